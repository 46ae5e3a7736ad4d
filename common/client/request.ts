import { OdpError } from "./error.ts";
import type { Plan } from "./plan.ts";

/** The request of an operation without its types. */
export interface AnyRequest {
  readonly path?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

export function refusal(text: string): OdpError {
  return new OdpError("invalid", text, { isUndone: true });
}

const HALF_CHARACTER = /\p{Surrogate}/u;

/** The address of a controller without a slash at its end. */
export function baseOf(url: string): string {
  if (!URL.canParse(url)) throw refusal(`${url} is no address. It begins with http:// or https://.`);
  const { protocol, username, password, origin, pathname } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") throw refusal(`The address begins with ${protocol}//.`);
  if (username !== "" || password !== "") throw refusal("The address has a user name. Give it as user and password.");
  if (/[?#]/.test(url)) throw refusal("The address has a query or a fragment.");
  return (origin + pathname).replace(/\/+$/, "");
}

/** Path and query of a call. */
export function targetOf(plan: Pick<Plan, "path">, { path = {}, query = {} }: AnyRequest): string {
  const filled = plan.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => segmentOf(name, path[name]));
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    textsOf(name, value).map((text): [string, string] => [name, text]),
  );
  return pairs.length === 0 ? filled : `${filled}?${new URLSearchParams(pairs).toString()}`;
}

/**
 * The value of a path parameter. The slashes of `path`, the rest of an address, stay as they are. An empty value would
 * name another operation, and browsers and Node resolve `.` and `..` before they send them.
 */
function segmentOf(name: string, value: unknown): string {
  const text = typeof value === "string" || typeof value === "number" ? String(value) : "";
  const steps = name === "path" ? text.replace(/^\//, "").split("/") : [text];
  if (text === "" || steps.join("") === "") throw refusal(`The path parameter ${name} is empty.`);
  if (steps.some((step) => step === "." || step === ".."))
    throw refusal(`The path parameter ${name} has a step . or .., which would name another path.`);
  return steps.map(encoded).join("/");
}

function encoded(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch (error) {
    throw new OdpError("invalid", "A path parameter has half a character.", { cause: error, isUndone: true });
  }
}

/**
 * The texts by which a query or a form sends a value: none if it is absent, several for a list, JSON for an object.
 */
export function textsOf(name: string, value: unknown): readonly string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return [textOf(value)];
  if (value.length === 0) throw refusal(`${name} is an empty list, which a query or a form cannot send.`);
  return value.some((one) => typeof one === "object") ? [jsonOf(value)] : value.map(textOf);
}

function textOf(value: unknown): string {
  const text = typeof value === "object" ? jsonOf(value) : String(checked(value));
  // A query or a form would replace it silently.
  if (HALF_CHARACTER.test(text)) throw refusal("A text has half a character.");
  return text;
}

/** The JSON of a value. A `bigint` becomes a text of digits, which the controller takes for a number. */
export function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value, (_name, member: unknown) =>
      typeof member === "bigint" ? member.toString() : checked(member),
    );
  } catch (error) {
    // For a value that contains itself.
    if (error instanceof TypeError) throw new OdpError("invalid", error.message, { cause: error, isUndone: true });
    throw error;
  }
}

function checked(value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value))
    throw refusal(`${value} cannot be sent: JSON has no such number.`);
  if (typeof value === "function" || typeof value === "symbol") throw refusal(`A ${typeof value} cannot be sent.`);
  return value;
}
