import { chmod, lchown } from "node:fs/promises";
import { closedTo } from "../../commands/host-user.ts";
import type { HostUser } from "../../commands/program.ts";
import type { CommandWork } from "./work.ts";

/** Where, as whom and with which variables the command of a policy runs. */
export interface Place {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Absent: the user of the agent. */
  readonly user?: HostUser;
}

/** Other users pass through the folder and cannot list it. */
const PASSABLE = 0o711;

/**
 * Place of the policy's runs. `AppError` with the reason if its user cannot run the command on this host: there is no such
 * user, the agent is not root, or the user may not read the depot or the conf.
 */
export async function placeOf(work: CommandWork, signal: AbortSignal): Promise<Place> {
  const { spec, policy, host, folder, depotFolder, confPath } = work;
  const user = !spec.user ? undefined : await host.users.find(spec.user, signal);
  const own = { ODP_POLICY: policy.name, ...(confPath !== undefined && { ODP_POLICY_CONF: confPath }) };
  const env = { ...spec.environment, ...own };
  if (!user) return { cwd: depotFolder ?? folder, env: { ...env, ODP_POLICY_FOLDER: folder } };
  return { cwd: await folderOf(work, user, signal), env, user };
}

/**
 * The folder of the depot, or the home of the user for a plain command: the working folder of the policy belongs to the
 * agent. It stays the agent's, so that the user cannot replace what root writes there.
 */
async function folderOf(work: CommandWork, user: HostUser, signal: AbortSignal): Promise<string> {
  const { host, folder, depotFolder, confPath } = work;
  if (confPath !== undefined) {
    await chmod(folder, PASSABLE);
    await lchown(confPath, user.uid, user.gid);
  }
  const needed = [depotFolder, confPath].filter((path) => path !== undefined);
  const readable = await host.users.readable(user, [user.home, ...needed], signal);
  const closed = needed.find((path) => !readable.has(path));
  if (closed === undefined) return depotFolder ?? (readable.has(user.home) ? user.home : "/");
  throw closedTo(user, closed);
}
