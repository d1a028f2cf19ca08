"""What a replay lets its process tree reach: nothing, or the endpoints of models."""

import re
from collections.abc import Iterable, Mapping

from playhead.core.policy import HistoryModel, InjectConfig, LLMConfig, ToolConfig
from playhead.engine.isolation.guard import Isolation, Mode
from playhead.engine.preflight import Plan

PROVIDER_HOSTS = (
    "api.openai.com", "*.openai.azure.com", "*.services.ai.azure.com", "api.anthropic.com",
    "generativelanguage.googleapis.com", "aiplatform.googleapis.com", "*-aiplatform.googleapis.com",
    "oauth2.googleapis.com", "bedrock-runtime.*.amazonaws.com", "api.mistral.ai", "api.groq.com", "api.cohere.com",
    "api.cohere.ai", "openrouter.ai", "api.x.ai", "api.deepseek.com", "api.together.xyz", "api.fireworks.ai",
    "api.perplexity.ai", "api.cerebras.ai", "api.moonshot.ai",
)  # fmt: skip
"""Where the models of well-known providers answer, at port 443."""
_BASE_URL = re.compile(
    r"(OPENAI|ANTHROPIC|AZURE_OPENAI|AZURE_AI|GOOGLE|GOOGLE_GEMINI|GEMINI|MISTRAL|GROQ|CO|COHERE|OPENROUTER|XAI"
    r"|DEEPSEEK|OLLAMA|TOGETHER|FIREWORKS|LITELLM|VLLM)_(BASE_URL|API_BASE|ENDPOINT|HOST|API_URL)"
)


def isolation_for(plan: Plan, *, mode: Mode, endpoints: Iterable[str], environment: Mapping[str, str]) -> Isolation:
    """The outer guard of a planned replay. Where tools may go live there is none: they need the network.

    Args:
        endpoints: the project's ``model_endpoints``.
        environment: the child's, for the base URLs of providers.
    """
    if plan.live_tools:
        return Isolation(mode="off")
    allow = model_endpoints(endpoints, environment) if _asks_models(plan) else frozenset[str]()
    return Isolation(mode=mode, allow_hosts=allow)


def model_endpoints(named: Iterable[str], environment: Mapping[str, str]) -> frozenset[str]:
    """Where models may be asked: what the project names, the providers' base URLs, and the providers themselves."""
    urls = {value for name, value in environment.items() if value and _BASE_URL.fullmatch(name)}
    return frozenset({*named, *urls, *(f"{host}:443" for host in PROVIDER_HOSTS)})


def _asks_models(plan: Plan) -> bool:
    policy = plan.model_policy
    live = not isinstance(policy, HistoryModel) or policy.on_miss == "live"
    return live or any(_generates(config) for config in (plan.policy.default, *plan.policy.tools.values()))


def _generates(config: ToolConfig | None) -> bool:
    return isinstance(config, LLMConfig) or (isinstance(config, InjectConfig) and _generates(config.then))
