import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SSH_CONNECTIONS_MAX, SSH_JUMP_TARGETS_MAX } from "../../../../common/limits.ts";
import { openTestHosts, testPrincipalOf, type TestHosts } from "../../../../test/helpers/hosts/hosts.ts";
import { startSshd, type Sshd, wayBehindGate } from "../../../../test/helpers/hosts/sshd.ts";
import { quickSshServer } from "../../../../test/helpers/hosts/ssh-server.ts";
import type { CommandOutcome, DispatchOptions, ProxiedHost } from "../types.ts";

const [jump, target, strict] = [await startSshd(), await startSshd(), await startSshd({ forwards: false })];
if (!jump && process.env.CI) throw new Error("OpenSSH's server is needed (apt-get install openssh-server).");

/** A relay in front of a server: counts connections and breaks them. */
async function relay(port: number) {
  const open = new Set<Socket>();
  let count = 0;
  const server = createServer((near) => {
    count += 1;
    const far = connect(port, "127.0.0.1");
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on("error", () => undefined).on("close", () => (open.delete(socket), near.destroy(), far.destroy()));
    }
    near.pipe(far).pipe(near);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const isIdle = async () => {
    for (const socket of open) await new Promise((resolve) => socket.once("close", resolve));
  };
  const cut = () => open.forEach((socket) => socket.destroy());
  return {
    port: (server.address() as AddressInfo).port,
    count: () => count,
    cut,
    /** Resolves when all connections are closed. */
    isIdle,
    [Symbol.asyncDispose]: async () => {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}

describe.skipIf(!jump || !target || !strict)("SSH through a jump host", () => {
  const [gate, far, closed] = [jump as Sshd, target as Sshd, strict as Sshd];
  let test: TestHosts;
  let next = 0;
  beforeAll(async () => {
    test = await openTestHosts();
    await save("gate", gate);
  });
  afterAll(async () => {
    await test[Symbol.asyncDispose]();
    for (const server of [gate, far, closed]) await server[Symbol.asyncDispose]();
  });

  const save = (host: string, server: Sshd, more: object = {}, sshkey?: string) =>
    test.hosts.save(test.principal(), {
      host,
      iplist: ["127.0.0.1"],
      ...(sshkey !== undefined && { sshkey }),
      config: { username: server.username, port: String(server.port), privatekey: server.privateKey, ...more },
    });
  const noted: string[] = [];
  const noteKey = (fingerprint: string) => Promise.resolve(void noted.push(fingerprint));
  const behind = (more: Partial<ProxiedHost> = {}) => wayBehindGate(far, { group: "g", noteKey, ...more });
  const exec = (
    way: ProxiedHost,
    line = "true",
    { as = test.principal(), ...options }: Partial<DispatchOptions> & { as?: ReturnType<typeof testPrincipalOf> } = {},
  ): Promise<CommandOutcome> =>
    test.hosts.dispatchBehind(
      as,
      way,
      { kind: "exec", line },
      { commandId: `jump-${(next += 1)}`, timeoutMs: 30_000, ...options },
    );

  it("runs a command on the host behind, and has the keys of both on record after the first time", async () => {
    const pieces: Uint8Array[] = [];
    const onOutput: DispatchOptions["onOutput"] = ({ data }) => void pieces.push(data);
    expect(await exec(behind({ sshkey: "" }), "pwd; exit 7", { onOutput })).toMatchObject({ state: "failed", code: 7 });
    expect(Buffer.concat(pieces).toString().trim()).toBe(far.home);
    expect(noted).toEqual([far.fingerprint]);
    expect((await test.hosts.get(test.principal(), "gate")).sshkey).toBe(gate.fingerprint);
  });

  it("says which of the two did not let it through, and why", async () => {
    const wrong = `SHA256:${"A".repeat(43)}`;
    await save("swapped", gate, {}, wrong);
    await save("locked", gate, { privatekey: null, password: "hunter2" });
    await save("closed", closed);
    const failing = {
      "The jump host swapped of 127.0.0.1 failed: The SSH key of swapped is": { proxy: "swapped" },
      "The jump host locked of 127.0.0.1 failed: SSH to": { proxy: "locked" },
      "The jump host closed of 127.0.0.1 failed: It does not lead to 127.0.0.1:": { proxy: "closed" },
      "its server does not allow it (AllowTcpForwarding, PermitOpen)": { proxy: "closed" },
      "The jump host gate of 127.0.0.1 failed: It does not lead to 127.0.0.1:1:": { port: 1 },
      "There is no host nowhere, the jump host of 127.0.0.1.": { proxy: "nowhere" },
      [`The SSH key of 127.0.0.1 is ${far.fingerprint}, its record says ${wrong}.`]: { sshkey: wrong },
      [`SSH to ${far.username}@127.0.0.1:${far.port} through gate failed:`]: { secret: "hunter2" },
    };
    for (const [message, more] of Object.entries(failing)) {
      const outcome = await exec(behind(more));
      expect(outcome).toMatchObject({ state: "unreachable", message: expect.stringContaining(message) as string });
      expect(outcome.message).not.toContain("hunter2");
    }
  });

  it("leads nobody over a host that he may not see, and nobody anywhere who runs no jobs", async () => {
    const reader = testPrincipalOf("matrix", "viewer");
    await expect(exec(behind(), "true", { as: reader })).rejects.toMatchObject({ code: "denied" });
    const neighbour = testPrincipalOf("second");
    await test.engine.tenant("second");
    expect(await exec(behind(), "true", { as: neighbour })).toMatchObject({
      state: "unreachable",
      message: "There is no host gate, the jump host of 127.0.0.1.",
    });
  });

  it("shares connections to the jump host among a hundred commands, and closes them after the last", async () => {
    await using hop = await relay(gate.port);
    await using server = await quickSshServer(0);
    await save("busy", gate, { port: String(hop.port) });
    const way = behind({
      proxy: "busy",
      port: server.port,
      username: "web",
      secret: "secret",
      sshkey: server.fingerprint,
    });
    const ends = await Promise.all(Array.from({ length: 100 }, () => exec(way)));
    expect(ends.filter(({ state }) => state !== "ok")).toEqual([]);
    expect(hop.count()).toBeGreaterThanOrEqual(Math.ceil(SSH_CONNECTIONS_MAX / SSH_JUMP_TARGETS_MAX));
    expect(hop.count()).toBeLessThan(50);
    await hop.isIdle();
  });

  it("ends every command once when the jump host dies, and says that it did", async () => {
    await using hop = await relay(gate.port);
    await save("mortal", gate, { port: String(hop.port) });
    const begun = Array.from({ length: 3 }, () => {
      let heard = (): void => undefined;
      const isBegun = new Promise<void>((resolve) => (heard = resolve));
      return { isBegun, end: exec(behind({ proxy: "mortal" }), "echo begun; sleep 60", { onOutput: () => heard() }) };
    });
    await Promise.all(begun.map(({ isBegun }) => isBegun));
    expect(hop.count()).toBe(1);
    hop.cut();
    for (const end of await Promise.all(begun.map((each) => each.end)))
      expect(end).toMatchObject({
        state: "failed",
        message: "The connection to the jump host mortal was lost while the command ran.",
      });
    expect(await exec(behind({ proxy: "mortal" }))).toMatchObject({ state: "ok" });
  });

  it("leads nobody over a connection whose key the jump host's record takes no more", async () => {
    await using hop = await relay(gate.port);
    const at = { port: String(hop.port) };
    await save("rekeyed", gate, at, gate.fingerprint);
    const way = behind({ proxy: "rekeyed" });
    let heard = (): void => undefined;
    const begun = new Promise<void>((resolve) => (heard = resolve));
    const running = exec(way, "echo begun; sleep 60", { onOutput: () => heard() });
    await begun;
    await save("rekeyed", gate, at, `SHA256:${"A".repeat(43)}`);
    expect(await exec(way)).toMatchObject({
      state: "unreachable",
      message: expect.stringContaining(
        "The jump host rekeyed of 127.0.0.1 failed: The SSH key of rekeyed is",
      ) as string,
    });
    expect(hop.count()).toBe(1);
    hop.cut();
    expect(await running).toMatchObject({ state: "failed" });
  });

  it("ends by its deadline where the jump host says nothing at all", async () => {
    const silent = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(silent, "listening");
    await save("silent", gate, { port: String((silent.address() as AddressInfo).port) });
    const outcome = await exec(behind({ proxy: "silent" }), "true", { timeoutMs: 200 });
    expect(outcome).toMatchObject({ state: "timeout" });
    silent.close();
  });
});
