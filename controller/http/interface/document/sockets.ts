import { membersOf, pathParameters } from "../../input/input.ts";
import { LINE_ENDS } from "../../sockets/line.ts";
import type { SocketEndpoint } from "../../sockets/socket.ts";
import { documented, type Json } from "./schemas.ts";

/** The extension `x-websocket` of the path of a socket: parameters, frames, and the ways in which it is closed. */
export function socketEntry({ path, permission, summary, input, frames }: SocketEndpoint): Json {
  const inPath = pathParameters(path);
  const { required = [] } = input as { readonly required?: readonly string[] };
  return {
    summary,
    "x-permission": permission,
    parameters: Object.entries(membersOf(input)).map(([name, schema]) => ({
      name,
      in: inPath.includes(name) ? "path" : "query",
      required: required.includes(name),
      schema: documented(schema),
    })),
    frames: {
      server: { description: "Text frames, each with one value as JSON.", schema: documented(frames) },
      client: { description: "Frames of the client are read and ignored." },
    },
    closes: LINE_ENDS.map(([code, reason]) => ({ code, reason })),
  };
}
