import type { MessageOf, OdpClient, RequestOf } from "../../../common/client/index.ts";
import { mapLimited } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { CLI_CALLS_AT_ONCE } from "../../../common/limits.ts";
import { suggestion } from "../../../common/text/nearest.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration, FlagDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { column, type View } from "../formats/columns.ts";
import { userNamed } from "./users.ts";

export type Group = MessageOf<"getAdminPermsGroup">[number];

const VIEW: View = {
  name: "fullname",
  columns: [
    column("group", { member: "fullname", isWhole: true }),
    column("members", { member: "member" }),
    column("reads", { member: "readonly" }),
    column("writes", { member: "writable" }),
    column("rows", { member: "readexps" }),
    column("columns", { member: "fields", isWide: true }),
    column("tags", { isWide: true }),
    column("id", { isWide: true }),
  ],
};
const GROUP = { name: "group", summary: "full name of the group, such as /operators", completes: "groups" } as const;
const MEMBER = {
  name: "member",
  summary: "name of a user; G/ and the full name for a group, such as G/noc",
  completes: "users",
  isRepeated: true,
} as const;
const OPENED: readonly FlagDeclaration[] = [
  {
    name: "read",
    value: "class",
    summary: "members read the objects of this class and those below; all of them",
    isRepeated: true,
    completes: "classes",
  },
  {
    name: "write",
    value: "class",
    summary: "members read and write them; all of them",
    isRepeated: true,
    completes: "classes",
  },
  {
    name: "rows",
    value: "condition",
    summary: "<class>: <condition>, the rows that members see; all of them",
    isRepeated: true,
  },
];

/** `odp group` */
export const GROUP_COMMANDS: CommandDeclaration = {
  name: "group",
  summary: "list and change the groups that give users their rights, and their members",
  commands: [
    { name: "list", isReading: true, summary: "list the groups", run: list },
    { name: "show", isReading: true, summary: "show one group", arguments: [GROUP], run: show },
    {
      name: "add",
      summary: "add a group",
      arguments: [{ name: "group", summary: "full name, such as /noc or /noc/night" }],
      flags: [
        { name: "member", value: "user", summary: MEMBER.summary, isRepeated: true, completes: "users" },
        ...OPENED,
      ],
      examples: ["odp group add /noc --member ana --read /acme/log"],
      run: add,
    },
    { name: "set", summary: "change what is given of a group", arguments: [GROUP], flags: OPENED, run: set },
    {
      name: "add-member",
      summary: "add users or groups to a group",
      arguments: [GROUP, MEMBER],
      run: (call) => change(call, added),
    },
    {
      name: "remove-member",
      summary: "take users or groups out of a group",
      arguments: [GROUP, MEMBER],
      run: (call) => change(call, taken),
    },
    { name: "remove", summary: "remove a group; what it opened is closed at once", arguments: [GROUP], run: remove },
  ],
};

/** All groups, each before those below it. */
export async function allGroups(client: OdpClient, signal?: AbortSignal): Promise<readonly Group[]> {
  return below("");

  async function below(parent: string): Promise<readonly Group[]> {
    const groups = await client.call("getAdminPermsGroup", { query: { parent } }, { signal });
    const each = await mapLimited(groups, CLI_CALLS_AT_ONCE, async (group) => [
      group,
      ...(group.isParent ? await below(group.fullname) : []),
    ]);
    return each.flat();
  }
}

async function groupNamed(client: OdpClient, name: string, signal: AbortSignal): Promise<Group> {
  const groups = await allGroups(client, signal);
  const found = groups.find(({ fullname, id }) => [fullname, id].includes(name) || fullname === `/${name}`);
  if (found !== undefined) return found;
  const known = groups.map(({ fullname }) => fullname);
  throw new AppError("not_found", `There is no group ${name}${suggestion(name, known)} Run: odp group list`);
}

async function list({ shell }: Call): Promise<void> {
  await shell.show(await allGroups(await shell.client(), shell.ended()), VIEW);
}

async function show(call: Call): Promise<void> {
  const { shell } = call;
  await shell.show(await groupNamed(await shell.client(), call.text("group"), shell.ended()), VIEW);
}

type Opened = Pick<RequestOf<"putAdminPermsGroup">["body"], "readonly" | "writable" | "readexps">;

function openedBy(call: Call): Opened {
  const [readonly, writable, readexps] = [call.list("read"), call.list("write"), call.list("rows")];
  return {
    ...(readonly.length > 0 && { readonly }),
    ...(writable.length > 0 && { writable }),
    ...(readexps.length > 0 && { readexps }),
  };
}

async function add(call: Call): Promise<void> {
  const { shell } = call;
  const [client, signal] = [await shell.client(), shell.ended()];
  const parts = call.text("group").replace(/^\/+/, "").split("/");
  const name = parts.pop() ?? "";
  const member = await membersNamed(client, call.list("member"), signal);
  const body = {
    ...{ name, ...openedBy(call) },
    ...(parts.length > 0 && { parent: `/${parts.join("/")}` }),
    ...(member.length > 0 && { member }),
  };
  const id = await client.call("postAdminPermsGroup", { body }, { signal, ifNoneMatch: "*" });
  const fullname = `/${[...parts, name].join("/")}`;
  await shell.show([{ fullname, id }], {
    name: "fullname",
    columns: [column("group", { member: "fullname" }), column("id")],
  });
}

async function set(call: Call): Promise<void> {
  const { shell } = call;
  const opened = openedBy(call);
  if (Object.keys(opened).length === 0)
    throw new UsageError("Nothing is to be changed: add --read, --write or --rows.");
  const [client, signal] = [await shell.client(), shell.ended()];
  const { id, revision } = await groupNamed(client, call.text("group"), signal);
  await client.call("putAdminPermsGroup", { body: { id, ...opened } }, { signal, ifMatch: revision });
}

type Change = (group: Group, members: readonly string[]) => readonly string[];

/** Changes the members of a group, unless another user has changed it since it was read. */
async function change(call: Call, changed: Change): Promise<void> {
  const { shell } = call;
  const [client, signal] = [await shell.client(), shell.ended()];
  const group = await groupNamed(client, call.text("group"), signal);
  const member = changed(group, await membersNamed(client, call.list("member"), signal));
  const { id, revision, fullname } = group;
  await client.call("putAdminPermsGroup", { body: { id, member } }, { signal, ifMatch: revision });
  await shell.show([{ ...group, member }], VIEW);
  if (member.length === 0) shell.note(`${fullname} has no members now.`);
}

const added: Change = ({ member }, members) => [...new Set([...member, ...members])];

const taken: Change = ({ member, fullname }, members) => {
  const missing = members.find((one) => !member.includes(one));
  if (missing !== undefined)
    throw new AppError("not_found", `${missing} is no member of ${fullname}. Run: odp group show ${fullname}`);
  return member.filter((one) => !members.includes(one));
};

/** Members as groups store them: `U/ana`, `G/noc`. */
function membersNamed(client: OdpClient, words: readonly string[], signal: AbortSignal): Promise<string[]> {
  return mapLimited(words, 1, async (word) =>
    /^[UG]\//.test(word) ? word : `U${(await userNamed(client, word, { signal })).fullname}`,
  );
}

async function remove(call: Call): Promise<void> {
  const { shell } = call;
  const [client, signal] = [await shell.client(), shell.ended()];
  const { id, revision } = await groupNamed(client, call.text("group"), signal);
  await client.call("deleteAdminPermsGroupById", { path: { id } }, { signal, ifMatch: revision });
}
