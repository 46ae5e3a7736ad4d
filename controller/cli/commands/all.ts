import type { CommandDeclaration } from "../declared/declaration.ts";
import { namedPlace } from "../declared/words.ts";

/** A file of commands, with their names. It is loaded when one of them is used, so no start reads all of them. */
interface CommandFile {
  readonly names: readonly string[];
  readonly load: () => Promise<readonly CommandDeclaration[]>;
}

/** In the order of the help. */
const FILES: readonly CommandFile[] = [
  {
    names: ["login", "logout", "context"],
    load: async () => (await import("../contexts/commands.ts")).CONTEXT_COMMANDS,
  },
  { names: ["mql", "api"], load: async () => (await import("./queries.ts")).QUERY_COMMANDS },
  { names: ["search"], load: async () => [(await import("./searches.ts")).SEARCH_COMMANDS] },
  { names: ["export"], load: async () => [(await import("./exports.ts")).EXPORT_COMMANDS] },
  { names: ["host", "hosts", "token", "tokens"], load: async () => (await import("./hosts.ts")).HOST_COMMANDS },
  { names: ["policy"], load: async () => [(await import("./policies.ts")).POLICY_COMMANDS] },
  { names: ["exec", "job"], load: async () => (await import("./jobs.ts")).JOB_COMMANDS },
  { names: ["depot", "deploy", "undeploy"], load: async () => (await import("./depots.ts")).DEPOT_COMMANDS },
  { names: ["rule"], load: async () => [(await import("./rules.ts")).RULE_COMMANDS] },
  { names: ["trigger"], load: async () => [(await import("./triggers.ts")).TRIGGER_COMMANDS] },
  { names: ["script"], load: async () => [(await import("./scripts.ts")).SCRIPT_COMMANDS] },
  { names: ["notify"], load: async () => [(await import("./notifications.ts")).NOTIFICATION_COMMANDS] },
  { names: ["config"], load: async () => [(await import("./settings.ts")).CONFIG_COMMANDS] },
  { names: ["fs"], load: async () => [(await import("../fs/commands.ts")).FILE_COMMANDS] },
  { names: ["wait"], load: async () => [(await import("./wait.ts")).WAIT_COMMAND] },
  { names: ["doctor"], load: async () => [(await import("./doctor.ts")).DOCTOR_COMMAND] },
  { names: ["user"], load: async () => [(await import("./users.ts")).USER_COMMANDS] },
  { names: ["group"], load: async () => [(await import("./groups.ts")).GROUP_COMMANDS] },
  { names: ["perm"], load: async () => [(await import("./permissions.ts")).PERMISSION_COMMANDS] },
  { names: ["tenant"], load: async () => [(await import("./tenants.ts")).TENANT_COMMANDS] },
  { names: ["cluster"], load: async () => [(await import("./cluster.ts")).CLUSTER_COMMAND] },
  { names: ["scrub", "repairs", "ahead", "audit"], load: async () => (await import("./upkeep.ts")).UPKEEP_COMMANDS },
  { names: ["key"], load: async () => [(await import("./keys.ts")).KEY_COMMANDS] },
  {
    names: ["completion", "__complete"],
    load: async () => (await import("../reference/commands.ts")).completionCommands(commandsFor),
  },
];

const NAMES = FILES.flatMap(({ names }) => names);

/** Every command of `odp`, in the order of its help. */
export async function allCommands(): Promise<readonly CommandDeclaration[]> {
  return (await Promise.all(FILES.map(({ load }) => load()))).flat();
}

/** The commands of the file whose command the words behind `odp` name. All if they name none, or ask for help before it. */
export async function commandsFor(words: readonly string[]): Promise<readonly CommandDeclaration[]> {
  const name = words[namedPlace(words, NAMES)];
  const file = FILES.find(({ names }) => name !== undefined && names.includes(name));
  return file === undefined ? allCommands() : file.load();
}
