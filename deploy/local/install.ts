import { execFile } from "node:child_process";
import { access, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const INSTALL_DEADLINE_MS = 10 * 60_000;
const CASSANDRA_FOLDER = "cassandra-5.0.8";
const ETCD_GO_MODULE = "go.etcd.io/etcd/server/v3@v3.7.3";
/**
 * The artifacts that Maven fetches. The path is relative to the project's folder, where programs that start a cluster
 * run.
 */
const POM = "deploy/local/pom.xml";

export type Progress = (line: string) => void;

/** Folder of downloads, kept between runs: `ODP_LOCAL_CACHE`, by default `~/.cache/odp`. */
export function defaultCacheDir(): string {
  return process.env.ODP_LOCAL_CACHE ?? join(homedir(), ".cache", "odp");
}

/** Path of an etcd binary: on PATH, otherwise in the cache, otherwise fetched by the first method that works. */
export async function installEtcd(cacheDir: string, progress: Progress): Promise<string> {
  const present = (await onPath("etcd")) ?? (await existing(join(cacheDir, "etcd", "etcd")));
  if (present !== undefined) return present;
  const failures: string[] = [];
  for (const [name, way] of [
    ["apt-get", etcdFromDebian],
    ["go install", etcdFromGo],
  ] as const) {
    progress(`etcd: fetching by ${name} …`);
    try {
      return join(await intoCache(cacheDir, "etcd", way), "etcd");
    } catch (error) {
      failures.push(`${name}: ${firstLines(error)}`);
    }
  }
  throw new Error(
    `No etcd on PATH, and none could be fetched. Install etcd 3.4 or newer, or see to one of these:\n${failures.join("\n")}`,
  );
}

/** Folder of Cassandra's jars; Maven fetches them if the cache has none. */
export async function installCassandra(cacheDir: string, progress: Progress): Promise<string> {
  if ((await onPath("java")) === undefined)
    throw new Error("Cassandra needs a Java runtime (11 or 17), and there is no `java` on PATH.");
  const folder = join(cacheDir, CASSANDRA_FOLDER);
  if ((await existing(folder)) !== undefined) return folder;
  if ((await onPath("mvn")) === undefined)
    throw new Error("Fetching Cassandra's jars needs Maven, and there is no `mvn` on PATH.");
  progress("Cassandra: fetching its jars by Maven (66 MB) …");
  return intoCache(cacheDir, CASSANDRA_FOLDER, cassandraFromMaven);
}

/**
 * Fills a temporary folder and then renames it, so that two installations at once do not disturb each other. Returns the
 * folder; if it is already there, it is not filled again.
 */
export async function intoCache(
  cacheDir: string,
  name: string,
  make: (folder: string) => Promise<void>,
): Promise<string> {
  const present = await existing(join(cacheDir, name));
  if (present !== undefined) return present;
  await mkdir(cacheDir, { recursive: true });
  const work = await mkdtemp(join(cacheDir, `${name}.new-`));
  try {
    await make(work);
    await rename(work, join(cacheDir, name));
  } catch (error) {
    if ((await existing(join(cacheDir, name))) === undefined) throw error;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return join(cacheDir, name);
}

async function etcdFromDebian(folder: string): Promise<void> {
  try {
    await command("apt-get", ["download", "etcd-server"], folder);
  } catch {
    await command("apt-get", ["update", "-qq"], folder);
    await command("apt-get", ["download", "etcd-server"], folder);
  }
  const archive = (await readdir(folder)).find((name) => name.endsWith(".deb"));
  if (archive === undefined) throw new Error("apt-get brought no package");
  await command("dpkg", ["-x", archive, "package"], folder);
  await rename(join(folder, "package", "usr", "bin", "etcd"), join(folder, "etcd"));
  await rm(join(folder, "package"), { recursive: true });
  await rm(join(folder, archive));
}

async function etcdFromGo(folder: string): Promise<void> {
  await run("go", ["install", ETCD_GO_MODULE], {
    timeout: INSTALL_DEADLINE_MS,
    env: { ...process.env, GOBIN: folder },
  });
  // The binary is named after the folder of the Go module.
  if ((await existing(join(folder, "server"))) !== undefined)
    await rename(join(folder, "server"), join(folder, "etcd"));
  await access(join(folder, "etcd"));
}

async function cassandraFromMaven(folder: string): Promise<void> {
  const goals = ["dependency:copy-dependencies", "-DincludeScope=runtime", `-DoutputDirectory=${folder}`];
  await command("mvn", ["-q", "-B", "-f", resolve(POM), ...goals], folder);
}

async function command(name: string, args: readonly string[], cwd: string): Promise<void> {
  await run(name, [...args], { cwd, timeout: INSTALL_DEADLINE_MS });
}

async function onPath(program: string): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const found = await existing(join(folder, program));
    if (found !== undefined) return found;
  }
  return undefined;
}

async function existing(path: string): Promise<string | undefined> {
  return access(path).then(
    () => path,
    () => undefined,
  );
}

function firstLines(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.trim().split("\n").slice(0, 4).join(" | ");
}
