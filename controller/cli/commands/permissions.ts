import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { column, type View } from "../formats/columns.ts";

const GIVERS: View = {
  name: "group",
  columns: [
    column("group", { isWhole: true }),
    column("gives", { member: "how" }),
    column("members", { member: "member" }),
  ],
};
/** Exit code for what the user may not do. */
const MAY_NOT = 2;

/** `odp perm` */
export const PERMISSION_COMMANDS: CommandDeclaration = {
  name: "perm",
  summary: "find out what users may do",
  commands: [
    {
      name: "explain",
      summary: "tell why a user may or may not use a class, a path or an endpoint, and which groups may",
      arguments: [{ name: "user", summary: "name of the user; default: you", isOptional: true, completes: "users" }],
      flags: [
        { name: "class", value: "class", summary: "whether objects of this class may be read", completes: "classes" },
        { name: "write", summary: "with --class: whether they may be written" },
        { name: "path", value: "path", summary: "whether this script or file may be used, such as /script/report.js" },
        { name: "endpoint", value: "call", summary: "whether this call may be made, such as 'GET /host'" },
      ],
      exitCodes: { 0: "the user may", 2: "the user may not" },
      examples: ["odp perm explain ana --class /acme/log", "odp perm explain ana --endpoint 'POST /job'"],
      run: explain,
    },
  ],
};

async function explain(call: Call): Promise<number> {
  const { shell } = call;
  const things = ["class", "path", "endpoint"].flatMap((name) => {
    const value = call.optional(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  if (things.length !== 1) throw new UsageError("Give one of --class, --path and --endpoint.");
  if (call.is("write") && call.optional("class") === undefined) throw new UsageError("--write needs --class.");
  const user = call.optional("user");
  const query = {
    ...Object.fromEntries(things),
    ...(user !== undefined && { user }),
    ...(call.is("write") && { write: true }),
  };
  const told = await (await shell.client()).call("getAdminPermsExplain", { query }, { signal: shell.ended() });
  if (shell.format !== "table" && shell.format !== "wide") await shell.show(told);
  else {
    await shell.show([told.allowed ? `${told.user} may.` : `${told.user} may not.`, ...told.why].join("\n"));
    if (told.who.length > 0) {
      await shell.write("\n");
      await shell.show(told.who, GIVERS);
    }
  }
  return told.allowed ? 0 : MAY_NOT;
}
