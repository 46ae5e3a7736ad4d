import type { CredentialsOptions } from "../../../common/client/index.ts";
import { UsageError } from "../declared/usage.ts";
import type { ContextFile } from "./file.ts";

/** The controller that a command calls, and how it signs in. */
export interface Access {
  readonly url: string;
  /** `<tenant>.<user>`; `undefined`: only the token tells it. */
  readonly user: string | undefined;
  readonly credentials: CredentialsOptions;
  /** Name of the context; `undefined`: the command line or the environment names the controller. */
  readonly context: string | undefined;
}

/** Options of the command line that name a controller and a user. */
export interface AccessWords {
  readonly context?: string | undefined;
  readonly url?: string | undefined;
  readonly user?: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

export const DEFAULT_URL = "http://127.0.0.1:8080";
const DEFAULT_USER = "matrix.admin";

/**
 * Who calls which controller. In this order: the context that the command line names, credentials of the environment
 * (`ODP_TOKEN`, `ODP_PASSWORD`), the context of `ODP_CONTEXT`, the current one. A password is never an option, because
 * other users of the machine see the command lines of processes.
 */
export async function accessOf(words: AccessWords, env: Environment, contexts: ContextFile): Promise<Access> {
  const { context, url, user } = words;
  if (context !== undefined) {
    if (url !== undefined || user !== undefined)
      throw new UsageError("--context names the controller and the user: leave out --url and --user.");
    return ofContext(context, contexts);
  }
  const place = url ?? given(env["ODP_URL"]);
  const who = user ?? given(env["ODP_USER"]);
  const token = given(env["ODP_TOKEN"]);
  const password = given(env["ODP_PASSWORD"]);
  if (token !== undefined) {
    if (password !== undefined) throw new UsageError("Set one of ODP_TOKEN and ODP_PASSWORD.");
    return { url: place ?? DEFAULT_URL, user: who, credentials: { token }, context: undefined };
  }
  if (password !== undefined) return ofPassword({ url: place ?? DEFAULT_URL, user: who ?? DEFAULT_USER, password });
  if (place !== undefined || who !== undefined)
    throw new UsageError(
      "A controller or user is named, and no credentials: set ODP_PASSWORD or ODP_TOKEN, or sign in with odp login and use --context.",
    );
  const name = given(env["ODP_CONTEXT"]) ?? (await contexts.load()).current;
  if (name !== undefined) return ofContext(name, contexts);
  throw new UsageError("You are not signed in. Run: odp login <url>, or set ODP_URL, ODP_USER and ODP_PASSWORD.");
}

/** Tenant of the user. `UsageError` if only a token tells it. */
export function tenantOf({ user }: Access): string {
  const tenant = user?.split(".", 1)[0];
  if (tenant === undefined || tenant === "")
    throw new UsageError("The tenant is not known from the token: set ODP_USER, or add --user <tenant.user>.");
  return tenant;
}

async function ofContext(name: string, contexts: ContextFile): Promise<Access> {
  const { url, user, session, token } = await contexts.named(name);
  const credentials = token === undefined ? { ...(session !== undefined && { session }) } : { token };
  return { url, user, credentials, context: name };
}

function ofPassword({
  url,
  user,
  password,
}: {
  readonly url: string;
  readonly user: string;
  readonly password: string;
}): Access {
  return { url, user, credentials: { user, password }, context: undefined };
}

/** An empty variable is none. */
function given(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}
