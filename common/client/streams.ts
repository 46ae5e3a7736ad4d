import { CLIENT_LINE_MAX_CHARACTERS } from "../limits.ts";
import { tooLarge, valueIn } from "./answers.ts";
import { OdpError } from "./error.ts";
import type { ServerEvent } from "./types.ts";

/** The lines of a body, without their ends. The last one need not have one. */
export async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of pieces) {
    // Only the new piece is searched: a long line comes in many pieces.
    const lines = decoder.decode(bytes, { stream: true }).split("\n");
    lines[0] = rest + (lines[0] ?? "");
    rest = lines.pop() ?? "";
    requireShort(rest);
    for (const line of lines) yield line.endsWith("\r") ? line.slice(0, -1) : line;
  }
  rest += decoder.decode();
  if (rest !== "") yield rest;
}

function requireShort(text: string): void {
  if (text.length <= CLIENT_LINE_MAX_CHARACTERS) return;
  const max = `${CLIENT_LINE_MAX_CHARACTERS} characters`;
  throw tooLarge(`A line or an event is longer than ${max}.`, "CLIENT_LINE_MAX_CHARACTERS");
}

/** A value on one line. A line that is no JSON means that the stream is broken. `isRead`: as of a `Plan`. */
export function lineValue(line: string, isRead = true): unknown {
  try {
    return valueIn(line);
  } catch (error) {
    throw new OdpError(isRead ? "unavailable" : "unknown_outcome", "A line of the stream is not JSON: it broke off.", {
      cause: error,
    });
  }
}

export interface EventHead {
  /** Pause before the next connection, which the controller asks for. */
  retryMs?: number;
}

/**
 * The events of a body. Comments are skipped, and an event that the end of the body cuts off is not told.
 * Sets `retryMs` of `head`.
 */
export async function* eventsOf(
  pieces: AsyncIterable<Uint8Array>,
  head: EventHead,
): AsyncGenerator<ServerEvent<unknown>> {
  let fields: Partial<Record<"id" | "event", string>> & { data?: string } = {};
  for await (const line of linesOf(pieces)) {
    if (line === "") {
      const { id, event = "message", data } = fields;
      fields = {};
      if (data !== undefined) yield { id, event, data: lineValue(data) };
      continue;
    }
    const [, name = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === "data") requireShort((fields.data = fields.data === undefined ? value : `${fields.data}\n${value}`));
    else if (name === "id" || name === "event") fields[name] = value;
    else if (name === "retry" && /^\d{1,7}$/.test(value)) head.retryMs = Number(value);
  }
}
