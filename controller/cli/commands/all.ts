import { CONTEXT_COMMANDS } from "../contexts/commands.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { DOCTOR_COMMAND } from "./doctor.ts";
import { FILE_COMMANDS } from "../fs/commands.ts";
import { completionCommands } from "../reference/commands.ts";
import { CLUSTER_COMMAND } from "./cluster.ts";
import { DEPOT_COMMANDS } from "./depots.ts";
import { EXPORT_COMMANDS } from "./exports.ts";
import { GROUP_COMMANDS } from "./groups.ts";
import { HOST_COMMANDS } from "./hosts.ts";
import { JOB_COMMANDS } from "./jobs.ts";
import { KEY_COMMANDS } from "./keys.ts";
import { NOTIFICATION_COMMANDS } from "./notifications.ts";
import { PERMISSION_COMMANDS } from "./permissions.ts";
import { POLICY_COMMANDS } from "./policies.ts";
import { QUERY_COMMANDS } from "./queries.ts";
import { RULE_COMMANDS } from "./rules.ts";
import { SCRIPT_COMMANDS } from "./scripts.ts";
import { SEARCH_COMMANDS } from "./searches.ts";
import { CONFIG_COMMANDS } from "./settings.ts";
import { TENANT_COMMANDS } from "./tenants.ts";
import { TRIGGER_COMMANDS } from "./triggers.ts";
import { UPKEEP_COMMANDS } from "./upkeep.ts";
import { USER_COMMANDS } from "./users.ts";
import { WAIT_COMMAND } from "./wait.ts";

/** Every command of `odp`, in the order of its help. */
export const COMMANDS: readonly CommandDeclaration[] = [
  ...CONTEXT_COMMANDS,
  ...QUERY_COMMANDS,
  SEARCH_COMMANDS,
  EXPORT_COMMANDS,
  ...HOST_COMMANDS,
  POLICY_COMMANDS,
  ...JOB_COMMANDS,
  ...DEPOT_COMMANDS,
  RULE_COMMANDS,
  TRIGGER_COMMANDS,
  SCRIPT_COMMANDS,
  NOTIFICATION_COMMANDS,
  CONFIG_COMMANDS,
  FILE_COMMANDS,
  WAIT_COMMAND,
  DOCTOR_COMMAND,
  USER_COMMANDS,
  GROUP_COMMANDS,
  PERMISSION_COMMANDS,
  TENANT_COMMANDS,
  CLUSTER_COMMAND,
  ...UPKEEP_COMMANDS,
  KEY_COMMANDS,
  ...completionCommands(() => COMMANDS),
];
