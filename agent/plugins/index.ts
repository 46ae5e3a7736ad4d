import type { CommandPlugin, PolicyPlugin } from "../policies/plugin.ts";
import { commandPolicy } from "./command-policy/command-policy.ts";
import { createDepotPlugins } from "./depot-deployer/depot-deployer.ts";
import type { DepotFolders } from "./depot-deployer/folders.ts";
import { jobRunners } from "./job-runner/job-runner.ts";
import { logPolicy } from "./log-policy/log-policy.ts";

export { ContentCache } from "./depot-deployer/cache.ts";
export { DepotFolders } from "./depot-deployer/folders.ts";

/** All kinds of policies. The list is explicit; plugins are not loaded at run time. */
export const POLICY_PLUGINS: readonly PolicyPlugin[] = [commandPolicy, logPolicy];

export function commandPlugins(folders: DepotFolders): readonly CommandPlugin[] {
  return [...jobRunners, ...createDepotPlugins(folders)];
}
