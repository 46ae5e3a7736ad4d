import { USER_NAME } from "../../common/agent/user-name.ts";
import { AppError } from "../../common/errors.ts";
import { POLICY_USER_LOOKUP_MS } from "../../common/limits.ts";
import type { Exec, ExecOptions } from "./exec.ts";
import type { HostUser } from "./program.ts";

const ROOT = 0;

/** Users of this host, as commands need them. */
export interface HostUsers {
  /**
   * Finds a user by name, also one that the host knows by a directory service. Undefined if the agent runs as that user.
   * `AppError("not_found")` without such a user; `AppError("denied")` if the agent may not run commands as another user,
   * because it is not root; `AppError("unsupported")` on a host without POSIX users.
   */
  find(name: string, signal?: AbortSignal): Promise<HostUser | undefined>;
  /** The files among the paths that the user may read, and the folders that he may read and enter. */
  readable(user: HostUser, paths: readonly string[], signal?: AbortSignal): Promise<ReadonlySet<string>>;
}

export function hostUsers(exec: Exec): HostUsers {
  return {
    find: (name, signal) => findHostUser(exec, name, signal),
    async readable(user, paths, signal) {
      const tests = paths.map(
        (_, index) => `{ [ -r "$P${index}" ] && { [ ! -d "$P${index}" ] || [ -x "$P${index}" ]; } && echo ${index}; }`,
      );
      const env = Object.fromEntries(paths.map((path, index) => [`P${index}`, path]));
      const found = await linesOf(exec, { line: tests.join("; "), user, env, signal });
      return new Set(paths.filter((_, index) => found.includes(String(index))));
    },
  };
}

/** The reason why a command cannot run as the user, with the remedy. */
export function closedTo({ name }: HostUser, path: string): AppError {
  const remedy = "Open the folders above it to other users, with chmod o+x.";
  return new AppError("denied", `The user ${name} may not read ${path}. ${remedy}`);
}

async function findHostUser(exec: Exec, name: string, signal?: AbortSignal): Promise<HostUser | undefined> {
  if (!USER_NAME.test(name)) throw new AppError("invalid", `${JSON.stringify(name)} is no name of a user.`);
  const groups = "{ setpriv --help | grep -q init-groups && command -v setpriv; }";
  const line = `id -u && id -u ${name} && id -g ${name} && echo ~${name} && ${groups}`;
  const [own, uid, gid, home = "/", setpriv] = await linesOf(exec, { line, signal });
  if (own === undefined) throw new AppError("unsupported", "This host cannot run commands as another user.");
  if (uid === undefined || gid === undefined) throw new AppError("not_found", `This host has no user ${name}.`);
  if (uid === own) return undefined;
  if (Number(own) !== ROOT)
    throw new AppError(
      "denied",
      `The agent may not run commands as ${name}: it runs as the user ${own}, who is not root.`,
    );
  return { name, uid: Number(uid), gid: Number(gid), home, ...(setpriv?.startsWith("/") && { setpriv }) };
}

/** Lines of the standard output. */
async function linesOf(exec: Exec, options: ExecOptions): Promise<readonly string[]> {
  const output: Buffer[] = [];
  const onOutput = (data: Buffer, stderr: boolean) => void (stderr || output.push(data));
  await exec({ cwd: "/", timeoutMs: POLICY_USER_LOOKUP_MS, ...options, onOutput });
  const lines = Buffer.concat(output).toString().split("\n");
  return lines.slice(0, -1).map((text) => text.trim());
}
