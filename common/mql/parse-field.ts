import { MQL_NESTING_MAX } from "../limits.ts";
import type { Field, TimeWindow } from "./ast.ts";
import { parseValue } from "./parse-value.ts";
import type { TokenReader } from "./reader.ts";

/** Parses a column, optionally after an alias and before members of a map: `a.config.os`, `config['os']`. */
export function parseField(reader: TokenReader): Field {
  const start = reader.token.start;
  const parts = [reader.expectName("a field")];
  for (;;) {
    if (parts.length > MQL_NESTING_MAX)
      throw reader.tooLarge(`a field has at most ${MQL_NESTING_MAX} members inside each other`, "MQL_NESTING_MAX");
    if (reader.isSign(".")) {
      reader.advance();
      parts.push(reader.expectName("a field after the dot"));
    } else if (reader.isSign("[")) {
      const window = bracket(reader, parts);
      if (window) return { kind: "field", parts, window, span: reader.spanFrom(start) };
    } else return { kind: "field", parts, span: reader.spanFrom(start) };
  }
}

/** Parses a member, `['os']`, or a time window, `['2026-01-01':'2026-01-02']`, which ends the field. */
function bracket(reader: TokenReader, parts: string[]): TimeWindow | undefined {
  const start = reader.token.start;
  reader.expectSign("[");
  const isMember = reader.token.kind === "text" && reader.peek(1).text === "]";
  if (isMember) {
    parts.push(reader.expectText());
    reader.expectSign("]");
    return undefined;
  }
  const from = reader.isSign(":") ? undefined : parseValue(reader);
  reader.expectSign(":");
  const to = reader.isSign("]") ? undefined : parseValue(reader);
  reader.expectSign("]");
  return { kind: "window", from, to, span: reader.spanFrom(start) };
}
