import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorText } from "../../../common/errors.ts";

const FETCH_DEADLINE_MS = 60_000;
const MINUTE_MS = 60_000;
/** Time for the commands of the last minute to run after it began. */
const SPARE_MS = 15_000;

/**
 * Delays in ms with which the commands of Debian's cron begin, all due in the same minute. Its package is unpacked
 * into a separate folder and sees separate folders instead of the system's. Where that is impossible (other systems,
 * other users than root), prints the reason and returns `undefined`.
 */
export async function lateOfCron(schedules: number, minutes: number): Promise<readonly number[] | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "odp-bench-cron-"));
  try {
    // apt downloads as its own user.
    await chmod(folder, 0o777);
    await run("apt-get", ["download", "-qq", "cron"], folder, FETCH_DEADLINE_MS);
    const [fetched] = (await readdir(folder)).filter((name) => name.endsWith(".deb"));
    await run("dpkg", ["-x", fetched ?? "", "."], folder, FETCH_DEADLINE_MS);
    const told = join(folder, "told");
    const tab = Array.from({ length: schedules }, () => `* * * * * root date +\\%s\\%3N >> ${told}\n`).join("");
    await mkdir(join(folder, "tables"));
    await writeFile(join(folder, "tables/bench"), tab, { mode: 0o644 });
    await writeFile(told, "");
    const untilMs = minutes * MINUTE_MS + SPARE_MS - (Date.now() % MINUTE_MS);
    await run("unshare", ["--mount", "sh", "-ec", APART], folder, untilMs, true);
    const late = (await readFile(told, "utf8"))
      .split("\n")
      .filter(Boolean)
      .map((line) => Number(line) % MINUTE_MS);
    if (late.length === 0) throw new Error("it ran nothing");
    return late;
  } catch (error) {
    console.log(`  Debian's cron is not measured: ${errorText(error)}`);
    return undefined;
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Hides the system's tables from this cron, and its table from the system. */
const APART = `mount --bind tables /etc/cron.d
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/spool
mkdir -p /var/spool/cron/crontabs
if [ -e /etc/crontab ]; then mount --bind /dev/null /etc/crontab; fi
exec usr/sbin/cron -f`;

/** Runs a command. With `isEnded` it may run until the timeout kills it. */
async function run(
  command: string,
  args: readonly string[],
  cwd: string,
  timeoutMs: number,
  isEnded = false,
): Promise<void> {
  const child = spawn(command, [...args], { cwd, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (data: Buffer) => (said += String(data).slice(0, 1_000)));
  const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
  const [code, signal] = (await once(child, "close").finally(() => clearTimeout(timer))) as [number | null, string];
  if (code !== 0 && !(isEnded && signal === "SIGKILL")) throw new Error(`${command} ended with ${code}: ${said}`);
}
