import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { BlobStore } from "../../../store/blobs.ts";
import type { CommandOutcome, DepotToDeploy, DispatchOptions, HostCommand } from "../types.ts";

export interface TargetUnderTest {
  run(command: HostCommand, options: DispatchOptions): Promise<CommandOutcome>;
  /** Store that holds the contents of depots. */
  readonly blobs: BlobStore;
}

/** Contract of both transports. The host is this machine, so that effects can be checked. */
export function targetContract(name: string, open: () => Promise<TargetUnderTest>): void {
  describe(`target: ${name}`, () => {
    let target: TargetUnderTest;
    let folder = "";
    beforeAll(async () => {
      target = await open();
      folder = await mkdtemp(join(tmpdir(), "odp-target-"));
    });
    afterAll(() => rm(folder, { recursive: true, force: true }));

    let next = 0;
    const run = async (command: HostCommand, options: Partial<DispatchOptions> = {}) => {
      const pieces: string[] = [];
      const parts = { out: "", err: "" };
      const commandId = `${Date.now()}-${(next += 1)}-${randomBytes(4).toString("hex")}`;
      const outcome = await target.run(command, {
        timeoutMs: 20_000,
        commandId,
        onOutput: ({ stderr, data }) => {
          const text = Buffer.from(data).toString();
          pieces.push(text);
          parts[stderr ? "err" : "out"] += text;
        },
        ...options,
      });
      return { outcome, pieces, ...parts, commandId };
    };
    const exec = (line: string, options: Partial<DispatchOptions> = {}) => run({ kind: "exec", line }, options);

    async function depotOf(
      version: string,
      files: Record<string, string>,
      more: Partial<DepotToDeploy> = {},
    ): Promise<DepotToDeploy> {
      const list = [];
      for (const [path, text] of Object.entries(files)) {
        const { digest, size } = await target.blobs.put([Buffer.from(text)], "test");
        list.push({ path, digest, size, executable: path.endsWith(".sh") });
      }
      return { name: "web", version, files: list, ...more };
    }
    const deploy = async (version: string, files: Record<string, string>, more: Partial<DepotToDeploy> = {}) =>
      run({ kind: "deploy", ...(await depotOf(version, files, more)) });
    const inDepot = (line: string) => run({ kind: "exec", line, depot: "web" });

    it("runs a line by the host's shell and brings output, error output and code", async () => {
      const { outcome, out, err } = await exec('echo out; echo err >&2; true && echo "it\'s $((1+1))"');
      expect(outcome).toMatchObject({ state: "ok", code: 0, message: "" });
      expect(out).toBe("out\nit's 2\n");
      expect(err).toBe("err\n");
      expect(outcome.endedMs).toBeGreaterThanOrEqual(outcome.startedMs);
    });

    it("tells a failure with its code", async () => {
      expect((await exec("exit 3")).outcome).toMatchObject({ state: "failed", code: 3 });
      expect((await exec("no-such-program-anywhere")).outcome).toMatchObject({ state: "failed", code: 127 });
      expect((await exec("kill -KILL $$")).outcome).toMatchObject({ state: "failed", code: 137 });
    });

    it("brings every byte of large output once and in order", async () => {
      const { outcome, out } = await exec('i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done');
      expect(outcome.state).toBe("ok");
      expect(out).toBe(Array.from({ length: 20_000 }, (_, at) => `line ${at}\n`).join(""));
    });

    it("sets variables, whatever is in them", async () => {
      const value = `a'b"c $HOME \\ \n;rm`;
      const { out } = await run({ kind: "exec", line: 'printf %s "$ODD"', environment: { ODD: value } });
      expect(out).toBe(value);
    });

    it("gives commands no input to wait for", async () => {
      expect((await exec("cat; echo done")).out).toBe("done\n");
    });

    // These tests run concurrently because they wait for deadlines and for processes to end.
    it.concurrent("ends a command at its deadline, with all it started", async () => {
      const began = performance.now();
      const { outcome, out } = await exec("sleep 300 & echo $!; sleep 300", { timeoutMs: 2_500 });
      expect(outcome.state).toBe("timeout");
      expect(performance.now() - began).toBeLessThan(10_000);
      expect(out).toMatch(/^\d+\n$/);
      await gone(Number(out));
    });

    const stubborn = "trap '' TERM; echo $$; while :; do sleep 0.2; done";
    it.concurrent("says that a command ran out of time when it is dead, also one that ignores TERM", async () => {
      const late = await exec(stubborn, { timeoutMs: 2_500 });
      expect([late.outcome.state, isAlive(Number(late.out))]).toEqual(["timeout", false]);
    });

    it.concurrent("says that a command is cancelled when it is dead, also one that ignores TERM", async () => {
      const stop = new AbortController();
      let pid = 0;
      const cancelled = await exec(stubborn, {
        signal: stop.signal,
        onOutput: ({ data }) => {
          pid = Number(Buffer.from(data).toString());
          stop.abort();
        },
      });
      expect([cancelled.outcome.state, isAlive(pid)]).toEqual(["cancelled", false]);
    });

    it.concurrent("ends a whole tree of processes that is cancelled, also those that ignore TERM", async () => {
      const stop = new AbortController();
      const seen: string[] = [];
      const { outcome } = await exec(TREE, {
        signal: stop.signal,
        onOutput: ({ data }) => {
          seen.push(Buffer.from(data).toString());
          if (pidsIn(seen).length === TREE_PROCESSES) stop.abort();
        },
      });
      expect([outcome.state, pidsIn(seen).length]).toEqual(["cancelled", TREE_PROCESSES]);
      await Promise.all(pidsIn(seen).map(gone));
    });

    it("ends a command that is cancelled, and does not begin one that already was", async () => {
      const mark = join(folder, "cancelled");
      const stop = new AbortController();
      const { outcome } = await exec(`echo began; sleep 30; touch ${mark}`, {
        signal: stop.signal,
        onOutput: () => stop.abort(),
      });
      expect(outcome.state).toBe("cancelled");
      expect((await exec(`touch ${mark}`, { signal: stop.signal })).outcome.state).toBe("cancelled");
      expect(existsSync(mark)).toBe(false);
    });

    it("runs a command id once, however often it is given", async () => {
      const file = join(folder, "once");
      const commandId = `${Date.now()}-once`;
      const twice = await Promise.all([
        exec(`echo x >> ${file}; sleep 0.2`, { commandId }),
        exec(`echo x >> ${file}; sleep 0.2`, { commandId }),
      ]);
      expect(twice.map(({ outcome }) => outcome.state)).toEqual(["ok", "ok"]);
      expect(await readFile(file, "utf8")).toBe("x\n");
    });

    it("serves several commands at once", async () => {
      const all = await Promise.all(Array.from({ length: 8 }, (_, at) => exec(`echo ${at}`)));
      expect(all.map(({ out }) => out.trim())).toEqual(["0", "1", "2", "3", "4", "5", "6", "7"]);
    });

    it("puts a depot in place, byte for byte, and runs its command there", async () => {
      const binary = Array.from({ length: 300 }, (_, at) => String.fromCharCode(at)).join("");
      const files = {
        "run.sh": "#!/bin/sh\necho one\n",
        "sub/dir/data.txt": binary,
        "odd name'$x.txt": "odd",
        empty: "",
      };
      const { outcome } = await deploy("1.0.0", files, {
        command: `pwd > ${join(folder, "where")}; ./run.sh > ${join(folder, "ran")}`,
      });
      expect(outcome).toMatchObject({ state: "ok" });
      expect(await readFile(join(folder, "ran"), "utf8")).toBe("one\n");
      expect((await inDepot("./run.sh")).out).toBe("one\n");
      expect((await inDepot("cat sub/dir/data.txt")).out).toBe(binary);
      expect((await inDepot('cat "odd name\'\\$x.txt"; wc -c < empty')).out.trim()).toMatch(/^odd\s*0$/);
    });

    it("replaces a version by another, whole", async () => {
      const { outcome } = await deploy("1.1.0", { "run.sh": "#!/bin/sh\necho two\n", "new.txt": "n" });
      expect(outcome).toMatchObject({ state: "ok" });
      expect((await inDepot("./run.sh; [ -e sub ] || echo gone")).out).toBe("two\ngone\n");
    });

    it("takes a version back whose command fails", async () => {
      const { outcome } = await deploy(
        "1.2.0",
        { "run.sh": "#!/bin/sh\necho three\n" },
        { command: "echo broken >&2; exit 4" },
      );
      expect(outcome).toMatchObject({ state: "failed", code: 4 });
      expect((await inDepot("./run.sh")).out).toBe("two\n");
    });

    it("puts the files into a remote path as well, beside what lies there", async () => {
      const remotePath = join(folder, "remote", "app");
      await mkdir(remotePath, { recursive: true });
      await writeFile(join(remotePath, "theirs.txt"), "theirs");
      expect(
        (await deploy("2.0.0", { "bin/run.sh": "#!/bin/sh\necho remote\n" }, { remotePath })).outcome,
      ).toMatchObject({ state: "ok" });
      expect(await readFile(join(remotePath, "bin/run.sh"), "utf8")).toBe("#!/bin/sh\necho remote\n");
      const gone = await run({ kind: "undeploy", name: "web", version: "2.0.0", remotePath });
      expect(gone.outcome).toMatchObject({ state: "ok" });
      expect(existsSync(join(remotePath, "bin/run.sh"))).toBe(false);
      expect(await readFile(join(remotePath, "theirs.txt"), "utf8")).toBe("theirs");
    });

    it("removes a depot after its command; one that is not there is gone already", async () => {
      await deploy("3.0.0", { "run.sh": "#!/bin/sh\necho x\n" });
      const command = `cp run.sh ${join(folder, "farewell")}`;
      expect((await run({ kind: "undeploy", name: "web", version: "2.9.9" })).outcome.state).toBe("ok");
      expect((await inDepot("true")).outcome.state).toBe("ok");
      expect((await run({ kind: "undeploy", name: "web", version: "3.0.0", command })).outcome).toMatchObject({
        state: "ok",
      });
      expect(existsSync(join(folder, "farewell"))).toBe(true);
      expect((await inDepot("true")).outcome.state).toBe("failed");
      expect((await run({ kind: "undeploy", name: "web", version: "3.0.0" })).outcome).toMatchObject({ state: "ok" });
    });

    it("refuses a depot that would leave its folder", async () => {
      for (const path of ["../outside.txt", "/etc/odp-outside", "a/../../outside.txt"]) {
        const { outcome } = await deploy("4.0.0", { [path]: "evil" });
        expect(outcome.state).toBe("failed");
        expect(outcome.message).not.toBe("");
      }
      expect((await deploy("4.0.0", { ok: "x" }, { name: "../evil" })).outcome.state).toBe("failed");
      expect((await inDepot("true")).outcome.state).toBe("failed");
    });

    it("says so when content is missing, and leaves nothing in place", async () => {
      const depot = await depotOf("5.0.0", { "a.txt": "a" });
      const files = [...depot.files, { path: "b.txt", digest: "0".repeat(64), size: 1, executable: false }];
      const { outcome } = await run({ kind: "deploy", ...depot, files });
      expect(outcome.state).toBe("failed");
      expect((await inDepot("true")).outcome.state).toBe("failed");
    });
  });
}

/** Each process starts two more, four levels deep. Every second one ignores TERM. */
const TREE = `grow='echo $$; [ $1 = 0 ] && exec sleep 300
sh -c "$0" "$0" $(($1-1)) &
(trap "" TERM; sh -c "$0" "$0" $(($1-1))) &
wait'
sh -c "$grow" "$grow" 4`;
const TREE_PROCESSES = 31;

function pidsIn(pieces: readonly string[]): readonly number[] {
  const lines = pieces.join("").split("\n");
  return lines.slice(0, -1).map(Number);
}

/** Waits until a process of this machine no longer exists. */
async function gone(pid: number): Promise<void> {
  const untilMs = Date.now() + 10_000;
  while (isAlive(pid)) {
    if (Date.now() > untilMs) throw new Error(`The process ${pid} is still there.`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export function isAlive(pid: number): boolean {
  try {
    // A zombie (ended but not waited for) counts as gone.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
