import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { column, type View } from "../formats/columns.ts";
import { newPassword } from "./passwords.ts";
import { PASSWORD_STDIN } from "./words.ts";

const VIEW: View = {
  name: "name",
  columns: [
    column("tenant", { member: "name", isWhole: true }),
    column("full name", { member: "fullname" }),
    column("ospace"),
    column("quotas", { of: ({ config }) => Object.entries(config ?? {}).map(([name, value]) => `${name}=${value}`) }),
    column("beyond", { of: ({ use }) => (use as { readonly beyond?: unknown } | undefined)?.beyond }),
    column("data goes", { member: "purgeAtMs", isTime: true }),
    column("title", { isWide: true }),
    column("license", { isWide: true }),
  ],
};
const TENANT = { name: "tenant", summary: "name of the tenant", completes: "tenants" } as const;

/** `odp tenant` */
export const TENANT_COMMANDS: CommandDeclaration = {
  name: "tenant",
  summary: "list, add, remove and restore tenants",
  commands: [
    {
      name: "list",
      isReading: true,
      summary: "list the tenants",
      flags: [{ name: "removed", summary: "those that were removed and can be restored" }],
      run: list,
    },
    { name: "show", isReading: true, summary: "show one tenant", arguments: [TENANT], run: show },
    {
      name: "add",
      summary: "add a tenant with an administrator, whose password is made and shown once",
      arguments: [{ name: "name", summary: "lower-case letters, digits and _" }],
      flags: [
        { name: "full-name", value: "text", summary: "name for people" },
        { name: "ospace", value: "path", summary: "name space of its classes; default: / and the name" },
        {
          name: "quota",
          value: "name=n",
          summary: "max_objects, max_bytes, max_agents or max_calls",
          isRepeated: true,
        },
        { name: "password", summary: "set the password of the administrator, which is asked for" },
        PASSWORD_STDIN,
      ],
      examples: ["odp tenant add acme --full-name 'Acme Ltd' --quota max_agents=50"],
      run: add,
    },
    {
      name: "remove",
      summary: "remove a tenant; its data is kept for a while",
      arguments: [TENANT],
      flags: [{ name: "purge", summary: "remove the data soon: the tenant cannot be restored" }],
      run: remove,
    },
    {
      name: "restore",
      summary: "bring a removed tenant back, with its data",
      arguments: [{ name: "tenant", summary: "name, as odp tenant list --removed shows it" }],
      run: restore,
    },
  ],
};

async function list(call: Call): Promise<void> {
  const { shell } = call;
  const request = call.is("removed") ? { query: { deleted: true } } : {};
  await shell.show(await (await shell.client()).call("getCompanys", request, { signal: shell.ended() }), VIEW);
}

async function show(call: Call): Promise<void> {
  const { shell } = call;
  const path = { name: call.text("tenant") };
  await shell.show(await (await shell.client()).call("getCompanysByName", { path }, { signal: shell.ended() }), VIEW);
}

async function add(call: Call): Promise<void> {
  const { shell } = call;
  const name = call.text("name");
  const [fullname, ospace] = [call.optional("full-name"), call.optional("ospace")];
  const config = quotasOf(call.list("quota"));
  const givesPassword = call.is("password") || call.is("password-stdin");
  const body = {
    name,
    ...(fullname !== undefined && { fullname }),
    ...(ospace !== undefined && { ospace }),
    ...(Object.keys(config).length > 0 && { config }),
    ...(givesPassword && { password: await newPassword(call, `Password of the administrator of ${name}: `) }),
  };
  const client = await shell.client();
  const made = await client.call("postCompanys", { body }, { signal: shell.ended() });
  await shell.show(made);
  if (made.password !== undefined) shell.note("The password is shown only now: keep it.");
}

function quotasOf(pairs: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const [, name, value] = /^(\w+)=(\d*)$/.exec(pair) ?? [];
      if (name === undefined || value === undefined)
        throw new UsageError(`--quota takes <name>=<number>, such as max_agents=50, not ${pair}.`);
      return [name, value];
    }),
  );
}

async function remove(call: Call): Promise<void> {
  const { shell } = call;
  const name = call.text("tenant");
  const request = { path: { name }, ...(call.is("purge") && { query: { purge: true } }) };
  await (await shell.client()).call("deleteCompanysByName", request, { signal: shell.ended() });
  if (!call.is("purge")) shell.note(`${name} is removed. To bring it back: odp tenant restore ${name}`);
}

async function restore(call: Call): Promise<void> {
  const { shell } = call;
  const path = { name: call.text("tenant") };
  const restored = await (await shell.client()).call("postCompanysByNameRestore", { path }, { signal: shell.ended() });
  await shell.show(restored, VIEW);
}
