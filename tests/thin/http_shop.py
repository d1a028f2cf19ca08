"""An MCP server that is reached over HTTP, by sessions of the older handshake and of the newer one."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

_INFO = {"name": "shop", "version": "1"}
_PRICE = {"name": "price", "description": "A price.", "inputSchema": {"type": "object"}}


class HTTPShop:
    """A server with one tool, and what has reached it. It stops at the end of the block, or with `stop`."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        shop = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                shop.reached.append(asked["method"])
                if "id" not in asked:
                    self.answer(202)
                    return
                result = shop.answer(asked["method"], asked.get("params") or {})
                self.answer(200, {"jsonrpc": "2.0", "id": asked["id"], "result": result})

            def do_GET(self) -> None:
                self.answer(405)

            def do_DELETE(self) -> None:
                self.answer(200)

            def answer(self, status: int, body: Any = None) -> None:
                data = b"" if body is None else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("mcp-session-id", "one")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._running = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/mcp?key=hidden"

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        known: dict[str, Any] = {"capabilities": {"tools": {}}}
        whole = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        match method:
            case "initialize":
                return {**known, "protocolVersion": params["protocolVersion"], "serverInfo": _INFO}
            case "server/discover":
                about = {"io.modelcontextprotocol/serverInfo": _INFO}
                return {**known, **whole, "supportedVersions": ["2026-07-28"], "_meta": about}
            case "tools/list":
                return {**whole, "tools": [_PRICE]}
            case _:
                said = {"type": "text", "text": f"{params['arguments']['item']}: 7"}
                return {"content": [said], "resultType": "complete"}

    def stop(self) -> None:
        if self._running.is_alive():
            self._server.shutdown()
            self._running.join()
            self._server.server_close()

    def __enter__(self) -> "HTTPShop":
        self._running.start()
        return self

    def __exit__(self, *about: object) -> None:
        self.stop()
