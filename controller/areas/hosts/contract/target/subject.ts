import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import type { BlobStore } from "../../../../store/blobs.ts";
import type { CommandOutcome, DepotToDeploy, DispatchOptions, HostCommand } from "../../types.ts";

export interface TargetUnderTest {
  run(command: HostCommand, options: DispatchOptions): Promise<CommandOutcome>;
  /** Store that holds the contents of depots. */
  readonly blobs: BlobStore;
}

/** A command that has ended, with all of its output. */
export interface CommandRun {
  readonly outcome: CommandOutcome;
  readonly out: string;
  readonly err: string;
}

/** The target under test, and the ways to run commands and to deploy there. */
export interface TargetSubject {
  /** A folder of the host that is removed after the tests. */
  readonly folder: () => string;
  readonly run: (command: HostCommand, options?: Partial<DispatchOptions>) => Promise<CommandRun>;
  readonly exec: (line: string, options?: Partial<DispatchOptions>) => Promise<CommandRun>;
  /** Makes the depot `web` with these files. Files whose names end in `.sh` are executable. */
  readonly depotOf: (version: string, files: Record<string, string>) => Promise<DepotToDeploy>;
  readonly deploy: (
    version: string,
    files: Record<string, string>,
    more?: Partial<DepotToDeploy>,
  ) => Promise<CommandRun>;
  /** Runs a line in the depot `web`. */
  readonly inDepot: (line: string) => Promise<CommandRun>;
}

/** Opens the target before the tests of the enclosing block. */
export function targetSubject(open: () => Promise<TargetUnderTest>): TargetSubject {
  let target: TargetUnderTest;
  let folder = "";
  beforeAll(async () => {
    target = await open();
    folder = await mkdtemp(join(tmpdir(), "odp-target-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  const run: TargetSubject["run"] = (command, options) => runOn(target, command, options);
  const depotOf: TargetSubject["depotOf"] = async (version, files) => ({
    name: "web",
    version,
    files: await storedFiles(target.blobs, files),
  });
  return {
    folder: () => folder,
    run,
    exec: (line, options) => run({ kind: "exec", line }, options),
    depotOf,
    deploy: async (version, files, more = {}) => run({ kind: "deploy", ...(await depotOf(version, files)), ...more }),
    inDepot: (line) => run({ kind: "exec", line, depot: "web" }),
  };
}

let runs = 0;

async function runOn(
  target: TargetUnderTest,
  command: HostCommand,
  options: Partial<DispatchOptions> = {},
): Promise<CommandRun> {
  const parts = { out: "", err: "" };
  const commandId = `${Date.now()}-${(runs += 1)}-${randomBytes(4).toString("hex")}`;
  const outcome = await target.run(command, {
    timeoutMs: 20_000,
    commandId,
    onOutput: ({ stderr, data }) => {
      parts[stderr ? "err" : "out"] += Buffer.from(data).toString();
    },
    ...options,
  });
  return { outcome, ...parts };
}

async function storedFiles(blobs: BlobStore, files: Record<string, string>): Promise<DepotToDeploy["files"]> {
  const list = [];
  for (const [path, text] of Object.entries(files)) {
    const { digest, size } = await blobs.put([Buffer.from(text)], "test");
    list.push({ path, digest, size, executable: path.endsWith(".sh") });
  }
  return list;
}
