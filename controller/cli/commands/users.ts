import type { MessageOf, OdpClient } from "../../../common/client/index.ts";
import { AppError } from "../../../common/errors.ts";
import { suggestion } from "../../../common/text/nearest.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration, FlagDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { column, type View } from "../formats/columns.ts";
import { newPassword, ownPassword } from "./passwords.ts";
import { PASSWORD_STDIN } from "./words.ts";

/** A user or an organisation, without those in it. */
export type UserNode = Omit<MessageOf<"getAdminUsers">, "nodes">;

const VIEW: View = {
  name: "username",
  columns: [
    column("user", { member: "username", isWhole: true }),
    column("path", { member: "fullname" }),
    column("active", { of: ({ isactive }) => yesOrNo(isactive) }),
    column("administrator", { of: ({ isadmin }) => yesOrNo(isadmin) }),
    column("email"),
    column("first name", { member: "firstname", isWide: true }),
    column("last name", { member: "lastname", isWide: true }),
    column("mobile", { isWide: true }),
    column("remark", { isWide: true }),
    column("id", { isWide: true }),
  ],
};
const USER = { name: "user", summary: "name of the user, or its path", completes: "users" } as const;
const YES_OR_NO = ["yes", "no"] as const;
const DETAIL_FLAGS: readonly FlagDeclaration[] = [
  { name: "email", value: "address", summary: "address of mail; all of them, in this order", isRepeated: true },
  { name: "first-name", value: "name", summary: "first name" },
  { name: "last-name", value: "name", summary: "last name" },
  { name: "remark", value: "text", summary: "note about the user" },
  { name: "administrator", value: "yes|no", summary: "yes: the user may do everything", choices: YES_OR_NO },
];

/** `odp user` */
export const USER_COMMANDS: CommandDeclaration = {
  name: "user",
  summary: "list, add, change and remove users",
  commands: [
    {
      name: "list",
      isReading: true,
      summary: "list the users",
      flags: [
        { name: "in", value: "path", summary: "only those in this organisation and below it" },
        { name: "organisations", summary: "the organisations in place of the users" },
      ],
      run: list,
    },
    { name: "show", isReading: true, summary: "show one user", arguments: [USER], run: show },
    {
      name: "add",
      summary: "add a user, with a password that is asked for",
      details:
        "Without a terminal, the password is the first line of the standard input. A new user may do little until it is in a group: odp group add-member /operators <user>.",
      arguments: [{ name: "name", summary: "name of the new user" }],
      flags: [
        { name: "in", value: "path", summary: "organisation that the user is in", default: "/" },
        { name: "organisation", summary: "add an organisation, which has no password" },
        PASSWORD_STDIN,
        ...DETAIL_FLAGS,
      ],
      examples: ["odp user add ana --email ana@example.com", "odp user add ana --password-stdin < password.txt"],
      run: add,
    },
    {
      name: "set",
      summary: "change what is given of a user",
      details:
        "A new password of your own takes the present one as well: it is asked for first, or is the first line for --password-stdin.",
      arguments: [USER],
      flags: [
        ...DETAIL_FLAGS,
        { name: "active", value: "yes|no", summary: "no: the user cannot sign in", choices: YES_OR_NO },
        { name: "move", value: "path", summary: "organisation that the user moves to" },
        { name: "password", summary: "set a new password, which is asked for" },
        PASSWORD_STDIN,
      ],
      examples: ["odp user set ana --active no", "odp user set ana --password"],
      run: set,
    },
    { name: "remove", summary: "remove a user", arguments: [USER], run: remove },
  ],
};

function yesOrNo(value: unknown): string {
  return value === true ? "yes" : value === false ? "no" : "";
}

/** All users and organisations below a path, each after the organisation it is in. */
export async function userNodes(
  client: OdpClient,
  { under, signal }: { readonly under?: string | undefined; readonly signal?: AbortSignal },
): Promise<readonly UserNode[]> {
  const request = under === undefined ? {} : { query: { fullname: under } };
  return flat([await client.call("getAdminUsers", request, { signal })]);
}

function flat(nodes: readonly MessageOf<"getAdminUsers">[]): readonly UserNode[] {
  return nodes.flatMap(({ nodes: below, ...node }) => [node, ...flat(below as MessageOf<"getAdminUsers">[])]);
}

/** The user, or with `mayBeOrganisation` the organisation, of that name, path or id. `AppError("not_found")` if none. */
export async function userNamed(
  client: OdpClient,
  name: string,
  { signal, mayBeOrganisation = false }: { readonly signal: AbortSignal; readonly mayBeOrganisation?: boolean },
): Promise<UserNode> {
  const nodes = await userNodes(client, { signal });
  const candidates = nodes.filter(({ otype }) => otype === "usr" || mayBeOrganisation);
  const found = candidates.find((node) => [node.fullname, node.username, node.id].includes(name));
  if (found !== undefined) return found;
  const known = candidates.map((node) => (name.startsWith("/") ? node.fullname : node.username));
  throw new AppError("not_found", `There is no user ${name}${suggestion(name, known)} Run: odp user list`);
}

async function list(call: Call): Promise<void> {
  const { shell } = call;
  const nodes = await userNodes(await shell.client(), { under: call.optional("in"), signal: shell.ended() });
  const kind = call.is("organisations") ? "org" : "usr";
  await shell.show(
    nodes.filter(({ otype }) => otype === kind),
    kind === "org" ? { ...VIEW, name: "fullname" } : VIEW,
  );
}

async function show(call: Call): Promise<void> {
  const { shell } = call;
  await shell.show(await userNamed(await shell.client(), call.text("user"), { signal: shell.ended() }), VIEW);
}

function detailsOf(call: Call): object {
  const [email, firstname] = [call.list("email"), call.optional("first-name")];
  const [lastname, remark] = [call.optional("last-name"), call.optional("remark")];
  const administrator = call.optional("administrator");
  return {
    ...(email.length > 0 && { email }),
    ...(firstname !== undefined && { firstname }),
    ...(lastname !== undefined && { lastname }),
    ...(remark !== undefined && { remark }),
    ...(administrator !== undefined && { isadmin: administrator === "yes" }),
  };
}

async function add(call: Call): Promise<void> {
  const { shell } = call;
  const username = call.text("name");
  const isOrganisation = call.is("organisation");
  if (isOrganisation && call.is("password-stdin"))
    throw new UsageError("An organisation has no password: leave --password-stdin out.");
  const passwd = isOrganisation ? undefined : await newPassword(call, `Password of ${username}: `);
  const body = {
    ...{ parent: call.text("in"), username, otype: isOrganisation ? ("org" as const) : ("usr" as const) },
    ...(passwd !== undefined && { passwd }),
    ...detailsOf(call),
  };
  const client = await shell.client();
  const id = await client.call("postAdminUsersNew", { body }, { signal: shell.ended(), ifNoneMatch: "*" });
  await shell.show([{ username, id }], {
    name: "username",
    columns: [column("user", { member: "username" }), column("id")],
  });
}

async function set(call: Call): Promise<void> {
  const { shell } = call;
  const [active, to] = [call.optional("active"), call.optional("move")];
  const asksPassword = call.is("password") || call.is("password-stdin");
  const details = { ...detailsOf(call), ...(active !== undefined && { isactive: active === "yes" }) };
  if (Object.keys(details).length === 0 && to === undefined && !asksPassword)
    throw new UsageError("Nothing is to be changed: odp user set --help lists what can be.");
  const [client, signal] = [await shell.client(), shell.ended()];
  const { id: userid, username } = await userNamed(client, call.text("user"), { signal, mayBeOrganisation: true });
  const body = {
    ...details,
    ...(asksPassword && (await passwordsOf(call, username))),
  };
  if (Object.keys(body).length > 0) await client.call("postAdminUsersByUserid", { path: { userid }, body }, { signal });
  if (to !== undefined) await client.call("getAdminUsersByUserid", { path: { userid }, query: { to } }, { signal });
}

async function passwordsOf(call: Call, username: string): Promise<{ readonly passwd: string }> {
  const [, ...caller] = ((await call.shell.access()).user ?? "").split(".");
  if (caller.join(".") === username) return ownPassword(call);
  return { passwd: await newPassword(call, `New password of ${username}: `) };
}

async function remove(call: Call): Promise<void> {
  const { shell } = call;
  const [client, signal] = [await shell.client(), shell.ended()];
  const { id: userid } = await userNamed(client, call.text("user"), { signal, mayBeOrganisation: true });
  await client.call("deleteAdminUsersByUserid", { path: { userid } }, { signal });
}
