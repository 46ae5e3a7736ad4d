import { OdpClient, isOdpError } from "../../../common/client/index.ts";
import { AppError, errorText } from "../../../common/errors.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import type { Shell } from "../declared/shell.ts";
import { UsageError } from "../declared/usage.ts";
import { column, type View } from "../formats/columns.ts";
import { requireName, type Context } from "./file.ts";

type Place = Pick<Context, "url" | "user">;

const VIEW: View = {
  name: "name",
  columns: [column("name", { isWhole: true }), column("current"), column("url"), column("user"), column("by")],
};

/** `odp login`, `logout` and `context`. */
export const CONTEXT_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: "login",
    summary: "sign in to a controller, and keep the session for later commands",
    details:
      "Asks for the password, and for the code of a second factor if the user has one. Without a terminal, the password is the first line of the standard input. The password itself is not kept. The session is in a file that only you can read; it ends after 30 days without use.",
    arguments: [{ name: "url", summary: "address of the controller, such as https://odp.example" }],
    flags: [
      { name: "user", value: "tenant.user", summary: "who signs in", default: "matrix.admin" },
      { name: "name", value: "name", summary: "name of the context; default: the host of the address" },
      {
        name: "token",
        summary: "keep an API token in place of a session: it is asked for, or read from the standard input",
      },
    ],
    examples: [
      "odp login https://odp.example --user acme.ana",
      "odp login https://odp.example --user acme.ana --token < token.txt",
    ],
    run: login,
  },
  {
    name: "logout",
    summary: "end the session of a context, and remove the context",
    arguments: [{ name: "name", summary: "default: the current context", isOptional: true, completes: "contexts" }],
    flags: [
      {
        name: "local",
        summary: "only remove the context from this machine; a session stays valid until it ends by itself",
      },
    ],
    run: logout,
  },
  {
    name: "context",
    summary: "list and choose the controllers you are signed in to",
    commands: [
      { name: "list", summary: "list the contexts", run: list },
      {
        name: "use",
        summary: "make a context the one that commands use",
        arguments: [{ name: "name", summary: "name of the context", completes: "contexts" }],
        run: use,
      },
    ],
  },
];

async function login(call: Call): Promise<void> {
  const { shell } = call;
  const place = { url: call.text("url"), user: call.text("user") };
  const name = call.optional("name") ?? hostOf(place.url);
  requireName(name);
  const context = await (call.is("token") ? withToken(shell, place) : withSession(shell, place));
  await shell.contexts.add(name, context);
  shell.note(`You are signed in to ${place.url} as ${place.user}. Commands use the context ${name} from now on.`);
}

/** The session is a remembered one, which lasts longer without use. */
async function withSession(shell: Shell, { url, user }: Place): Promise<Context> {
  const [company, ...rest] = user.split(".");
  const username = rest.join(".");
  if (company === undefined || company === "" || username === "")
    throw new UsageError(`--user takes <tenant>.<user>, as matrix.admin, not ${user}.`);
  const client = new OdpClient({ url, fetch: shell.fetch });
  const given = { company, username, password: await shell.secret(`Password of ${user}: `), remember: true };
  const signal = shell.ended();
  try {
    return { url, user, session: await client.signIn(given, { signal }) };
  } catch (error) {
    if (!asksForCode(error)) throw error;
    const code = await shell.secret("Code of the second factor: ");
    return { url, user, session: await client.signIn({ ...given, code }, { signal }) };
  }
}

/** The token is tried by a call that every user may make. */
async function withToken(shell: Shell, { url, user }: Place): Promise<Context> {
  const token = await shell.secret("Token: ");
  await new OdpClient({ url, token, fetch: shell.fetch }).call("getUserTokens", {}, { signal: shell.ended() });
  return { url, user, token };
}

async function logout(call: Call): Promise<void> {
  const { shell } = call;
  const { contexts } = shell;
  const name = call.optional("name") ?? (await contexts.load()).current;
  if (name === undefined) throw new UsageError("There is no current context. Run: odp context list");
  const { url, session, token } = await contexts.named(name);
  if (session !== undefined && !call.is("local"))
    await endSession(new OdpClient({ url, session, fetch: shell.fetch }), shell.ended(), name);
  await contexts.remove(name);
  if (token !== undefined) shell.note("The token stays valid: revoke it at the controller if nothing else uses it.");
}

/** A session that has ended already is no failure. */
async function endSession(client: OdpClient, signal: AbortSignal, name: string): Promise<void> {
  try {
    await client.signOut({ signal });
  } catch (error) {
    if (isOdpError(error, "signin")) return;
    throw new AppError(
      "unavailable",
      `The session could not be ended: ${errorText(error)} Run: odp logout ${name} --local`,
      {
        cause: error,
      },
    );
  }
}

async function list({ shell }: Call): Promise<void> {
  const { current, contexts } = await shell.contexts.load();
  const rows = Object.entries(contexts).map(([name, { url, user, token }]) => ({
    name,
    current: name === current ? "*" : "",
    url,
    user,
    by: token === undefined ? "session" : "token",
  }));
  await shell.show(rows, VIEW);
}

async function use(call: Call): Promise<void> {
  await call.shell.contexts.use(call.text("name"));
}

/** True if the password is right, and the code of a second factor is missing. */
function asksForCode(error: unknown): boolean {
  const fields: unknown = isOdpError(error, "denied") ? error.details?.["fields"] : undefined;
  return Array.isArray(fields) && fields.includes("code");
}

/** Host of an address, which names its context. */
function hostOf(url: string): string {
  if (!URL.canParse(url)) throw new UsageError(`${url} is no address. It begins with http:// or https://.`);
  const { hostname, port } = new URL(url);
  return [hostname.replaceAll(/[^\w.-]/g, ""), ...(port === "" ? [] : [port])].join("-");
}
