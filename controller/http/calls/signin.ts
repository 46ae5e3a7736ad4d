import type { IncomingHttpHeaders } from "node:http";
import { AppError } from "../../../common/errors.ts";
import { readingOnly, type Principal } from "../../areas/permissions/index.ts";
import { SESSION_COOKIE } from "../answer/answer.ts";
import { SESSION_FIELD } from "../body/body.ts";
import type { Fields } from "../body/fields.ts";
import { NO_PROOF, provesOrigin, type OwnAddress } from "../connections/origin.ts";
import type { RightsChange } from "./standing.ts";

/** The part of the area `users` that the sign-in gate needs. */
export interface SignIn {
  /** `undefined` if the session is unknown or over, or if its user has changed since. */
  bySession(session: string, traceparent: string): Promise<Principal | undefined>;
  /**
   * As `bySession`, if the answer is at hand; otherwise `undefined`, which says nothing about the session. Absent: it is
   * never at hand.
   */
  byKnownSession?(session: string, call: Pick<Principal, "traceparent" | "remote">): Principal | undefined;
  /** `login` is `<company>.<username>`. `AppError("limited")` after too many failures. */
  byPassword(credentials: Credentials, traceparent: string): Promise<Principal | undefined>;
  /** `undefined` if the token is unknown or no longer valid. */
  byToken(token: string, traceparent: string): Promise<Principal | undefined>;
  /** A command, by the token of its run; `undefined` as for `byToken`. Absent: commands cannot call. */
  byRun?(token: string, traceparent: string): Promise<Principal | undefined>;
  /**
   * Calls the listener for users whose rights or sessions changed at any controller, after the other methods return the
   * new state.
   */
  onChange(listener: (change: RightsChange) => void): void;
}

export interface Credentials {
  readonly login: string;
  readonly password: string;
  readonly remote: string;
}

export interface Identity {
  readonly principal: Principal;
  readonly session: string | undefined;
  /**
   * False if a browser may have sent the credentials by itself for a page of another site. Such a principal can only
   * read: a change is refused when its rights are checked.
   */
  readonly isProven: boolean;
}

export interface Caller {
  readonly headers: IncomingHttpHeaders;
  readonly query: Fields;
  readonly own: OwnAddress;
  readonly remote: string;
  readonly traceparent: string;
  /** True if the endpoint accepts calls from commands. */
  readonly commands?: true | undefined;
}

/**
 * The caller, by the first valid one of: session in the query, Bearer token, cookie, Basic credentials. Credentials
 * that prove the origin of the call take precedence over those that do not.
 */
export async function identify(signIn: SignIn, caller: Caller): Promise<Identity | undefined> {
  const named = await bySessions(signIn, sessionsIn(caller.query), caller);
  if (named !== undefined) return named;
  const token = await byBearer(signIn, caller);
  if (token !== undefined) return token;
  const session = cookieIn(caller.headers.cookie, SESSION_COOKIE);
  const cookie = session === undefined ? undefined : await bySessions(signIn, [session], caller);
  if (cookie !== undefined && provesOrigin(caller.headers, caller.own, "cookie")) return cookie;
  const basic = await byBasic(signIn, caller);
  if (basic !== undefined && provesOrigin(caller.headers, caller.own, "basic")) return basic;
  return unproven(cookie ?? basic);
}

function unproven(identity: Identity | undefined): Identity | undefined {
  return identity && { ...identity, principal: readingOnly(identity.principal, NO_PROOF), isProven: false };
}

/** As `identify`, if the caller is named by a session in the query whose rights are at hand. */
export function knownIdentity(signIn: SignIn, query: Fields, call: Call): Identity | undefined {
  const [session] = query.get(SESSION_FIELD) ?? NONE;
  if (typeof session !== "string" || session === "") return undefined;
  const principal = signIn.byKnownSession?.(session, call);
  return principal && { principal, session, isProven: true };
}

const NONE: readonly unknown[] = [];

/** The error of a call without valid credentials. It names a refused token, which its program believes to be valid. */
export function notSignedIn({ authorization = "" }: IncomingHttpHeaders): AppError {
  if (!/^bearer\b/i.test(authorization)) return new AppError("signin", "Nobody is signed in.");
  const text = "Nobody is signed in: the token in Authorization is unknown, has expired or was removed.";
  return new AppError("signin", text, { details: { reason: "token" } });
}

type Call = Pick<Caller, "remote" | "traceparent">;

/** The caller, by a session in a field of a form. */
export function identifyByForm(signIn: SignIn, fields: Fields, call: Call): Promise<Identity | undefined> {
  return bySessions(signIn, sessionsIn(fields), call);
}

async function bySessions(
  signIn: SignIn,
  sessions: readonly string[],
  { remote, traceparent }: Call,
): Promise<Identity | undefined> {
  for (const session of sessions) {
    const principal = await signIn.bySession(session, traceparent);
    if (principal !== undefined) return { principal: { ...principal, remote }, session, isProven: true };
  }
  return undefined;
}

function sessionsIn(fields: Fields): readonly string[] {
  const values = fields.get(SESSION_FIELD) ?? [];
  return values.filter((value) => typeof value === "string" && value !== "").slice(0, 2) as string[];
}

/** Value of the first cookie with that name that is not empty. */
export function cookieIn(header: string | undefined, wanted: string): string | undefined {
  for (const pair of header?.split(";") ?? []) {
    const [name, value] = pair.split("=", 2);
    if (name?.trim() === wanted && value !== undefined && value !== "") return value.trim();
  }
  return undefined;
}

/** Always proven: a page of another site cannot make a browser send a Bearer token. */
async function byBearer(signIn: SignIn, caller: Caller): Promise<Identity | undefined> {
  const { headers, remote, traceparent } = caller;
  const token = /^bearer +([\w.~+/-]+=*)$/i.exec(headers.authorization ?? "")?.[1];
  if (token === undefined) return undefined;
  const command = caller.commands && (await signIn.byRun?.(token, traceparent));
  const principal = command ?? (await signIn.byToken(token, traceparent));
  return principal && { principal: { ...principal, remote }, session: undefined, isProven: true };
}

async function byBasic(signIn: SignIn, caller: Caller): Promise<Identity | undefined> {
  const match = /^basic +([A-Za-z0-9+/_-]+=*)$/i.exec(caller.headers.authorization ?? "");
  if (match?.[1] === undefined) return undefined;
  const text = Buffer.from(match[1], "base64").toString("utf8");
  const colon = text.indexOf(":");
  if (colon < 1) return undefined;
  const credentials = { login: text.slice(0, colon), password: text.slice(colon + 1), remote: caller.remote };
  const principal = await signIn.byPassword(credentials, caller.traceparent);
  return principal && { principal: { ...principal, remote: caller.remote }, session: undefined, isProven: true };
}
