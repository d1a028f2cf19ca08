"""Provider wire formats and message shapes, read into and written from one normal form.

A message is ``{"role": "system|user|assistant|tool", "parts": [...]}``, with ``finish_reason`` on a response.
Parts: ``text``, ``tool_call`` (id, name, arguments), ``tool_result`` (id, name, content, is_error), ``reasoning``,
``media``, ``other``. JSON inside (arguments, results, schemas) is in stored form.
"""
