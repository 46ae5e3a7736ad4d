import type { IncomingHttpHeaders } from "node:http";
import type { Principal } from "../areas/permissions/index.ts";
import { SESSION_COOKIE } from "./answer.ts";
import { SESSION_FIELD } from "./body.ts";
import type { Fields } from "./fields.ts";

/** What the sign-in gate needs of the area `users`. */
export interface SignIn {
  /** Undefined for a session that is unknown, over, or of a user who changed since. */
  bySession(session: string, traceparent: string): Promise<Principal | undefined>;
  /** `login` is `<company>.<username>`. `AppError("limited")` after too many failures. */
  byPassword(credentials: Credentials, traceparent: string): Promise<Principal | undefined>;
}

export interface Credentials {
  readonly login: string;
  readonly password: string;
  readonly remote: string;
}

export interface Identity {
  readonly principal: Principal;
  readonly session: string | undefined;
  /** Came with a cookie alone, which a browser sends for other pages too. */
  readonly byCookie: boolean;
}

export interface Caller {
  readonly headers: IncomingHttpHeaders;
  readonly query: Fields;
  readonly remote: string;
  readonly traceparent: string;
}

/** Who calls, by the first of query, cookie and Basic credentials that holds. */
export async function identify(signIn: SignIn, caller: Caller): Promise<Identity | undefined> {
  for (const session of sessionsIn(caller.query)) {
    const principal = await signIn.bySession(session, caller.traceparent);
    if (principal !== undefined) return { principal, session, byCookie: false };
  }
  const cookie = cookieSession(caller.headers.cookie);
  if (cookie !== undefined) {
    const principal = await signIn.bySession(cookie, caller.traceparent);
    if (principal !== undefined) return { principal, session: cookie, byCookie: true };
  }
  return byBasic(signIn, caller);
}

/** Who calls, by a session that came as a field of a form. */
export async function identifyByForm(
  signIn: SignIn,
  fields: Fields,
  traceparent: string,
): Promise<Identity | undefined> {
  for (const session of sessionsIn(fields)) {
    const principal = await signIn.bySession(session, traceparent);
    if (principal !== undefined) return { principal, session, byCookie: false };
  }
  return undefined;
}

function sessionsIn(fields: Fields): readonly string[] {
  const values = fields.get(SESSION_FIELD) ?? [];
  return values.filter((value) => typeof value === "string" && value !== "").slice(0, 2) as string[];
}

function cookieSession(header: string | undefined): string | undefined {
  for (const pair of header?.split(";") ?? []) {
    const [name, value] = pair.split("=", 2);
    if (name?.trim() === SESSION_COOKIE && value !== undefined && value !== "") return value.trim();
  }
  return undefined;
}

async function byBasic(signIn: SignIn, caller: Caller): Promise<Identity | undefined> {
  const match = /^basic +([A-Za-z0-9+/_-]+=*)$/i.exec(caller.headers.authorization ?? "");
  if (match?.[1] === undefined) return undefined;
  const text = Buffer.from(match[1], "base64").toString("utf8");
  const colon = text.indexOf(":");
  if (colon < 1) return undefined;
  const credentials = { login: text.slice(0, colon), password: text.slice(colon + 1), remote: caller.remote };
  const principal = await signIn.byPassword(credentials, caller.traceparent);
  return principal === undefined ? undefined : { principal, session: undefined, byCookie: false };
}
