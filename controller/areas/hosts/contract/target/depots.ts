import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { EXTERNAL_AGENT_KEY } from "../../../../../common/masking.ts";
import type { TargetSubject } from "./subject.ts";

/** Tests of depots that are deployed, replaced, and reverted if their command fails. */
export function depotsContract({ folder, deploy, inDepot }: TargetSubject): void {
  it("puts a depot in place, byte for byte, and runs its command there", async () => {
    const binary = Array.from({ length: 300 }, (_, at) => String.fromCharCode(at)).join("");
    const files = {
      "run.sh": "#!/bin/sh\necho one\n",
      "sub/dir/data.txt": binary,
      "odd name'$x.txt": "odd",
      empty: "",
    };
    const { outcome } = await deploy("1.0.0", files, {
      command: `pwd > ${join(folder(), "where")}; ./run.sh > ${join(folder(), "ran")}`,
    });
    expect(outcome).toMatchObject({ state: "ok" });
    expect(await readFile(join(folder(), "ran"), "utf8")).toBe("one\n");
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
}

/** Tests of removed depots and of remote paths. */
export function removedDepotsContract({ folder, run, deploy, inDepot }: TargetSubject): void {
  it("puts the files into a remote path as well, beside what lies there", async () => {
    const remotePath = join(folder(), "remote", "app");
    await mkdir(remotePath, { recursive: true });
    await writeFile(join(remotePath, "theirs.txt"), "theirs");
    expect((await deploy("2.0.0", { "bin/run.sh": "#!/bin/sh\necho remote\n" }, { remotePath })).outcome).toMatchObject(
      { state: "ok" },
    );
    expect(await readFile(join(remotePath, "bin/run.sh"), "utf8")).toBe("#!/bin/sh\necho remote\n");
    const gone = await run({ kind: "undeploy", name: "web", version: "2.0.0", remotePath });
    expect(gone.outcome).toMatchObject({ state: "ok" });
    expect(existsSync(join(remotePath, "bin/run.sh"))).toBe(false);
    expect(await readFile(join(remotePath, "theirs.txt"), "utf8")).toBe("theirs");
  });

  it("removes a depot after its command; one that is not there is gone already", async () => {
    await deploy("3.0.0", { "run.sh": "#!/bin/sh\necho x\n" });
    const command = `cp run.sh ${join(folder(), "farewell")}`;
    expect((await run({ kind: "undeploy", name: "web", version: "2.9.9" })).outcome.state).toBe("ok");
    expect((await inDepot("true")).outcome.state).toBe("ok");
    expect((await run({ kind: "undeploy", name: "web", version: "3.0.0", command })).outcome).toMatchObject({
      state: "ok",
    });
    expect(existsSync(join(folder(), "farewell"))).toBe(true);
    expect((await inDepot("true")).outcome.state).toBe("failed");
    expect((await run({ kind: "undeploy", name: "web", version: "3.0.0" })).outcome).toMatchObject({ state: "ok" });
  });
}

/** Tests of what a remote path contains after deployments and removals. */
export function remotePathsContract({ folder, run, deploy, inDepot }: TargetSubject): void {
  it("removes from a remote path what only the former version has; a failed command brings exactly that back", async () => {
    const remotePath = join(folder(), "exact");
    const elsewhere = join(folder(), "elsewhere");
    const names = async (at = remotePath) => (await readdir(at)).sort();
    await deploy("2.0.0", { "a.txt": "a2", "old.txt": "old" }, { remotePath });
    await deploy("2.1.0", { "a.txt": "a3", "new.txt": "new" }, { remotePath });
    expect(await names()).toEqual(["a.txt", "new.txt"]);
    const command = `ls > ${join(folder(), "seen")}; exit 3`;
    const failing = await deploy("2.2.0", { "a.txt": "a4", "b.txt": "b" }, { remotePath, command });
    expect(failing.outcome).toMatchObject({ state: "failed", code: 3 });
    expect(await readFile(join(folder(), "seen"), "utf8")).toContain("b.txt");
    expect(await names()).toEqual(["a.txt", "new.txt"]);
    expect(await readFile(join(remotePath, "a.txt"), "utf8")).toBe("a3");
    expect((await inDepot("cat a.txt new.txt")).out).toBe("a3new");
    await deploy("2.3.0", { "c.txt": "c" }, { remotePath: elsewhere });
    expect([await names(), await names(elsewhere)]).toEqual([[], ["c.txt"]]);
    await deploy("2.4.0", { "d.txt": "d" });
    expect(await names(elsewhere)).toEqual([]);
    await run({ kind: "undeploy", name: "web", version: "2.4.0" });
  });

  it("leaves the former version whole when files cannot be put into the remote path", async () => {
    const remotePath = join(folder(), "blocked");
    await deploy("2.0.0", { "a.txt": "a2" }, { remotePath });
    await mkdir(join(remotePath, "z.txt"));
    const { outcome } = await deploy("2.1.0", { "a.txt": "a3", "b.txt": "b", "z.txt": "z" }, { remotePath });
    expect(outcome.state).toBe("failed");
    expect((await readdir(remotePath)).sort()).toEqual(["a.txt", "z.txt"]);
    expect((await inDepot("cat a.txt; ls -A | grep -c z.txt")).out).toMatch(/^a2[01]\n$/);
    expect(await readFile(join(remotePath, "a.txt"), "utf8")).toBe("a2");
    expect((await run({ kind: "undeploy", name: "web", version: "2.1.0" })).outcome.message).toBe("not deployed");
    await run({ kind: "undeploy", name: "web", version: "2.0.0" });
  });

  it("runs nothing and removes nothing for a version that is not in place, or not at that remote path", async () => {
    const remotePath = join(folder(), "placed");
    await deploy("3.0.0", { "run.sh": "x" }, { remotePath });
    const command = `touch ${join(folder(), "ran-without")}`;
    const notDeployed = { state: "ok", message: "not deployed" };
    for (const which of [{ version: "2.9.9" }, { version: "3.0.0", remotePath: join(folder(), "other") }])
      expect((await run({ kind: "undeploy", name: "web", command, ...which })).outcome).toMatchObject(notDeployed);
    expect(existsSync(join(folder(), "ran-without"))).toBe(false);
    expect((await inDepot("cat run.sh")).out).toBe("x");
    expect(existsSync(join(remotePath, "run.sh"))).toBe(true);
    await run({ kind: "undeploy", name: "web", version: "3.0.0" });
    expect((await run({ kind: "undeploy", name: "web", version: "3.0.0", command })).outcome).toMatchObject(
      notDeployed,
    );
    expect(existsSync(join(folder(), "ran-without"))).toBe(false);
  });

  it("gives the command its variables and shows the key in no output", async () => {
    const environment = { [EXTERNAL_AGENT_KEY]: "4711-is-the-key" };
    const command = `echo "it is $${EXTERNAL_AGENT_KEY}"; printf %s "$${EXTERNAL_AGENT_KEY}" > ${join(folder(), "key")}; exit 1`;
    const { outcome, out } = await deploy("2.4.0", { "a.txt": "a" }, { command, environment });
    expect(`${outcome.message} ${out}`).toContain("it is ******");
    expect(`${outcome.message} ${out}`).not.toContain("4711-is-the-key");
    expect(await readFile(join(folder(), "key"), "utf8")).toBe("4711-is-the-key");
  });
}

/** Tests of depots that cannot be deployed. */
export function refusedDepotsContract({ run, depotOf, deploy, inDepot }: TargetSubject): void {
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
}
