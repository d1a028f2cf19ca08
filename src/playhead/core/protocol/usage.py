"""Token counts of the providers into exclusive buckets. The provider's own object is kept as ``raw``."""

from typing import Any

from playhead.core.protocol.shape import is_object
from playhead.core.values import Usage


def count(value: Any) -> int | None:
    """A token count, or None for what is not one: negative, fractional, not finite, not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value != value or value < 0 or value in (float("inf"),) or value != int(value):
        return None
    return int(value)


def pick(raw: Any, *path: str) -> int | None:
    """The count at ``path`` inside nested objects, None when there is none."""
    for step in path:
        if not is_object(raw):
            return None
        raw = raw.get(step)
    return count(raw)


def inclusive(
    raw: Any,
    *,
    input: int | None,
    output: int | None,
    cache_read: int | None = None,
    cache_write: int | None = None,
    reasoning: int | None = None,
) -> Usage:
    """Buckets from an input that includes the cached tokens and an output that includes the reasoning."""
    return Usage(
        input_uncached=_less(input, cache_read, cache_write),
        input_cache_read=cache_read,
        input_cache_write=cache_write,
        output_visible=_less(output, reasoning),
        output_reasoning=reasoning,
        raw=raw,
    )


def _less(total: int | None, *parts: int | None) -> int | None:
    return None if total is None else max(0, total - sum(p or 0 for p in parts))


def openai(raw: Any) -> Usage | None:
    """Chat completions (``prompt_tokens``) and Responses (``input_tokens``)."""
    if not is_object(raw):
        return None
    kind_in, kind_out = ("prompt", "completion") if "prompt_tokens" in raw else ("input", "output")
    details = f"{kind_in}_tokens_details"
    return inclusive(
        raw,
        input=pick(raw, f"{kind_in}_tokens"),
        output=pick(raw, f"{kind_out}_tokens"),
        cache_read=pick(raw, details, "cached_tokens"),
        cache_write=pick(raw, details, "cache_write_tokens"),
        reasoning=pick(raw, f"{kind_out}_tokens_details", "reasoning_tokens"),
    )


def anthropic(raw: Any) -> Usage | None:
    """Messages: the input count excludes the cached tokens, the output includes the thinking."""
    if not is_object(raw):
        return None
    thinking = pick(raw, "output_tokens_details", "thinking_tokens")
    return Usage(
        input_uncached=pick(raw, "input_tokens"),
        input_cache_read=pick(raw, "cache_read_input_tokens"),
        input_cache_write=pick(raw, "cache_creation_input_tokens"),
        output_visible=_less(pick(raw, "output_tokens"), thinking),
        output_reasoning=thinking,
        raw=raw,
    )


def gemini(raw: Any) -> Usage | None:
    """generateContent, in either spelling: the prompt includes the cached tokens, candidates exclude the thoughts."""
    if not is_object(raw):
        return None

    def at(snake: str, camel: str) -> int | None:
        return pick(raw, camel) if camel in raw else pick(raw, snake)

    cached = at("cached_content_token_count", "cachedContentTokenCount")
    prompt = at("prompt_token_count", "promptTokenCount")
    return Usage(
        input_uncached=_less(prompt, cached),
        input_cache_read=cached,
        output_visible=at("candidates_token_count", "candidatesTokenCount"),
        output_reasoning=at("thoughts_token_count", "thoughtsTokenCount"),
        raw=raw,
    )
