import type { Alternative, Duration, Moment, Search, SearchField, Segment, Test, When, Word } from "./ast.ts";

/** Matches a start of the text that would be read as something else. */
const LIKE_A_HEAD = /^(?:#|\/|debug\s*>)/i;

/** The text of a search. Parsing it gives the same tree except for the spans. */
export function printSearch(search: Search): string {
  const path = search.class && `${search.class.path}${search.class.subtree && search.class.path !== "/" ? "/" : ""}:`;
  const head = `${search.debug ? "debug> " : ""}${search.current ? "#" : ""}${path ?? ""}`;
  const segments = search.segments.map(printSegment);
  if (path !== undefined) return [head, ...segments].join(" | ");
  return `${head}${LIKE_A_HEAD.test(segments[0] ?? "") ? "| " : ""}${segments.join(" | ")}`;
}

export function printSegment(segment: Segment): string {
  switch (segment.kind) {
    case "match":
      return segment.alternatives.map(printAlternative).join("; ");
    case "top":
      return `top ${segment.count}`;
    case "sort":
      return `sort ${listed(segment.items.map((item) => `${printField(item.field)}${item.descending ? " desc" : ""}`))}`;
    case "print":
      return `print ${segment.items.map((item) => `${printField(item.field)}${item.alias === undefined ? "" : ` as ${item.alias}`}`).join(", ")}`;
    case "uniq":
    case "group":
      return `${segment.kind} ${listed(segment.fields.map(printField))}`;
    case "time":
      return `${printWhen(segment.when)}${segment.field ? ` for ${printField(segment.field)}` : ""}`;
    case "delete":
      return "delete";
    case "call":
      return `call ${segment.name} ${JSON.stringify(segment.options)}`;
    case "lua":
      return `lua ${segment.field}=<lua>${segment.source}</lua>`;
  }
}

/** A field named `by` needs the word `by`, which is optional for others. */
function listed(fields: readonly string[]): string {
  return `${/^by(?![\p{L}\p{N}\p{M}_])/iu.test(fields[0] ?? "") ? "by " : ""}${fields.join(", ")}`;
}

export function printAlternative({ words, test }: Alternative): string {
  return [...words.map(printWord), ...(test ? [printTest(test)] : [])].join(" ");
}

export function printField(field: SearchField): string {
  return field.parts.join(".");
}

function printTest({ field, operator, value }: Test): string {
  return `${printField(field)} ${operator} ${printWord(value)}`;
}

function printWord({ text, quoted }: Word): string {
  return quoted ? `'${text.replaceAll("'", "''")}'` : text;
}

function printWhen(when: When): string {
  switch (when.kind) {
    case "period":
      return when.name;
    case "nearest":
    case "within":
      return `${when.kind} ${printDuration(when.duration)}`;
    case "window":
      return `window ${printMoment(when.from)} to ${printMoment(when.to)}`;
    case "at":
      return `at ${printMoment(when.moment)}${when.within ? ` within ${printDuration(when.within)}` : ""}`;
  }
}

function printDuration({ amount, unit }: Duration): string {
  return `${amount} ${unit}`;
}

function printMoment({ timeMs, isDay }: Moment): string {
  const text = new Date(timeMs).toISOString();
  return isDay ? text.slice(0, 10) : text.slice(0, -1).replace("T", " ");
}
