import { JOIN_TOKEN_MAX_MINUTES } from "../../../common/limits.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { column, type View } from "../formats/columns.ts";
import { joinLine, TOKEN_VIEW } from "../join.ts";
import { HOST } from "./words.ts";

const VIEW: View = {
  name: "host",
  columns: [
    column("host", { isWhole: true }),
    column("status"),
    column("tags"),
    column("groups", { member: "hostgroups" }),
    column("addresses", { member: "iplist" }),
    column("policies", { of: ({ policies }) => Object.keys((policies ?? {}) as object) }),
    column("depots", { isWide: true, member: "depot" }),
    column("facts", { isWide: true, member: "config" }),
  ],
};

const TOKEN: CommandDeclaration = {
  name: "token",
  summary: "make a one-time token and show the line by which an agent joins with it",
  arguments: [{ ...HOST, summary: "name that the host gets; default: its own", isOptional: true }],
  flags: [{ name: "minutes", value: "n", summary: `how long the token holds, up to ${JOIN_TOKEN_MAX_MINUTES}` }],
  run: token,
};

/** `odp host`, and its two short forms. */
export const HOST_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: "host",
    summary: "list, change and remove hosts, and let new ones join",
    commands: [
      {
        name: "list",
        isReading: true,
        summary: "list the hosts",
        flags: [{ name: "tag", value: "tag", summary: "only those with the tag" }],
        run: list,
      },
      { name: "show", isReading: true, summary: "show one host", arguments: [HOST], run: show },
      TOKEN,
      {
        name: "set",
        summary: "make a host, or change what is given",
        arguments: [HOST],
        flags: [
          {
            name: "ip",
            value: "address",
            summary: "address of the host; all of them, in this order",
            isRepeated: true,
          },
          { name: "domain", value: "domain", summary: "domain of the host" },
          { name: "group", value: "group", summary: "group of hosts; all groups of this one", isRepeated: true },
          { name: "tag", value: "tag", summary: "tag; all tags of this one", isRepeated: true },
        ],
        examples: ["odp host set web-1 --ip 192.0.2.10 --tag europe/oslo"],
        run: set,
      },
      {
        name: "remove",
        summary: "remove a host; its agent can no longer connect",
        arguments: [HOST],
        run: remove,
      },
    ],
  },
  { name: "hosts", isReading: true, summary: "list the hosts; the same as odp host list", run: list },
  { ...TOKEN, details: "The same as odp host token." },
  {
    name: "tokens",
    isReading: true,
    summary: "list join tokens until they expire",
    run: listTokens,
    commands: [
      {
        name: "revoke",
        summary: "end a join token that was not used",
        arguments: [{ name: "id", summary: "id of the token, as odp tokens shows it" }],
        run: revoke,
      },
    ],
  },
];

async function list(call: Call): Promise<void> {
  const { shell } = call;
  const tag = call.optional("tag");
  const query = tag === undefined ? {} : { query: { tag } };
  await shell.show(await (await shell.client()).call("getHost", query, { signal: shell.ended() }), VIEW);
}

async function show(call: Call): Promise<void> {
  const { shell } = call;
  const path = { name: call.text("host") };
  await shell.show(await (await shell.client()).call("getHostByName", { path }, { signal: shell.ended() }), VIEW);
}

async function token(call: Call): Promise<void> {
  const { shell } = call;
  const host = call.optional("host");
  const minutes = call.number("minutes", { max: JOIN_TOKEN_MAX_MINUTES });
  const body = { ...(host !== undefined && { host }), ...(minutes !== undefined && { minutes }) };
  const client = await shell.client();
  const message = await client.call("postAgentToken", { body }, { signal: shell.ended() });
  if (shell.format !== "table") return shell.show(message);
  shell.note(`On ${host ?? "the host"}, beside agent.js (dist/agent.js of the controller):`);
  await shell.write(`${joinLine(message, host, (await shell.access()).url)}\n`);
}

async function listTokens({ shell }: Call): Promise<void> {
  const listed = await (await shell.client()).call("getAgentToken", {}, { signal: shell.ended() });
  const isTable = shell.format === "table" || shell.format === "wide";
  await shell.show(listed, isTable ? TOKEN_VIEW : undefined);
}

async function revoke(call: Call): Promise<void> {
  const { shell } = call;
  const path = { id: call.text("id") };
  await (await shell.client()).call("deleteAgentTokenById", { path }, { signal: shell.ended() });
}

async function set(call: Call): Promise<void> {
  const { shell } = call;
  const [iplist, hostgroups, tags] = [call.list("ip"), call.list("group"), call.list("tag")];
  const domain = call.optional("domain");
  const changes = {
    ...(iplist.length > 0 && { iplist }),
    ...(hostgroups.length > 0 && { hostgroups }),
    ...(tags.length > 0 && { tags }),
    ...(domain !== undefined && { domain }),
  };
  if (Object.keys(changes).length === 0)
    throw new UsageError("Nothing is to be changed: add --ip, --domain, --group or --tag.");
  const client = await shell.client();
  const body = { host: call.text("host"), ...changes };
  const made = await client.call("postHost", { body }, { signal: shell.ended() });
  await shell.show(made, VIEW);
}

async function remove(call: Call): Promise<void> {
  const { shell } = call;
  const name = call.text("host");
  const client = await shell.client();
  const signal = shell.ended();
  await client.call("deleteHostByName", { path: { name } }, { signal });
  shell.note(`${name} is removed. An agent that still runs there must be stopped on the host.`);
}
