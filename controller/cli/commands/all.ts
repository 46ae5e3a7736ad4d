import { CONTEXT_COMMANDS } from "../contexts/commands.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { DOCTOR_COMMAND } from "./doctor.ts";
import { FILE_COMMANDS } from "../fs/commands.ts";
import { completionCommands } from "../reference/commands.ts";
import { DEPOT_COMMANDS } from "./depots.ts";
import { HOST_COMMANDS } from "./hosts.ts";
import { JOB_COMMANDS } from "./jobs.ts";
import { KEY_COMMANDS } from "./keys.ts";
import { POLICY_COMMANDS } from "./policies.ts";
import { QUERY_COMMANDS } from "./queries.ts";
import { CONFIG_COMMANDS } from "./settings.ts";
import { UPKEEP_COMMANDS } from "./upkeep.ts";
import { WAIT_COMMAND } from "./wait.ts";

/** Every command of `odp`, in the order of its help. */
export const COMMANDS: readonly CommandDeclaration[] = [
  ...CONTEXT_COMMANDS,
  ...QUERY_COMMANDS,
  ...HOST_COMMANDS,
  POLICY_COMMANDS,
  ...JOB_COMMANDS,
  ...DEPOT_COMMANDS,
  CONFIG_COMMANDS,
  FILE_COMMANDS,
  WAIT_COMMAND,
  DOCTOR_COMMAND,
  ...UPKEEP_COMMANDS,
  KEY_COMMANDS,
  ...completionCommands(() => COMMANDS),
];
