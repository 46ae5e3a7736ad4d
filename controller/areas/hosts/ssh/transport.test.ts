import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openTestHosts, type TestHosts } from "../../../../test/helpers/hosts/hosts.ts";
import { startSshd, type Sshd } from "../../../../test/helpers/hosts/sshd.ts";
import { targetContract } from "../contract/target.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;
const LOOK_BYTES = 20_000_000;

/** Bytes in buffers that are still referenced. */
function heldBytes(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

const sshd = await startSshd();
if (!sshd && process.env.CI) throw new Error("OpenSSH's server is needed (apt-get install openssh-server).");

describe.skipIf(!sshd)("SSH", () => {
  let test: TestHosts;
  const server = sshd as Sshd;
  beforeAll(async () => {
    test = await openTestHosts();
  });
  afterAll(async () => {
    await test[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });

  const save = (host: string, config: Record<string, unknown> = {}, sshkey?: string) =>
    test.hosts.save(test.principal(), {
      host,
      iplist: ["127.0.0.1"],
      ...(sshkey === undefined ? {} : { sshkey }),
      config: { username: server.username, port: String(server.port), privatekey: server.privateKey, ...config },
    });
  let next = 0;
  const exec = (host: string, line: string) =>
    test.hosts.dispatch(
      test.principal(),
      host,
      { kind: "exec", line },
      { commandId: `ssh-${(next += 1)}`, timeoutMs: 20_000 },
    );

  targetContract("SSH", async () => {
    await save("target");
    return {
      blobs: (await test.engine.tenant("matrix")).blobs,
      run: (command, options) => test.hosts.dispatch(test.principal(), "target", command, options),
    };
  });

  it("records the first key a host shows and refuses another from then on", async () => {
    await save("first-use");
    expect(await exec("first-use", "true")).toMatchObject({ state: "ok" });
    expect((await test.hosts.get(test.principal(), "first-use")).sshkey).toBe(server.fingerprint);
    const wrong = `SHA256:${"A".repeat(43)}`;
    await save("swapped", {}, wrong);
    const outcome = await exec("swapped", "true");
    expect(outcome).toMatchObject({ state: "unreachable" });
    expect(outcome.message).toBe(`The SSH key of swapped is ${server.fingerprint}, its record says ${wrong}.`);
  });

  it("shows what a command is given in no process list, whatever its variables are called and hold", async () => {
    await save("discreet");
    const environment = {
      PIN: "4711-is-the-pin",
      line: "one\n.\n,two",
      given: "g",
      ended: "1",
      code: "7",
      watcher: "w",
    };
    const pieces: Uint8Array[] = [];
    const list = `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 4711-is-the-pin`;
    const told = `printf '%s|' "$PIN" "$line" "$given" "$ended" "$code" "$watcher"`;
    const outcome = await test.hosts.dispatch(
      test.principal(),
      "discreet",
      { kind: "exec", line: `${list}; ${told}`.replace("4711-is", "4711[-]is"), environment },
      { commandId: "discreet", timeoutMs: 20_000, onOutput: ({ data }) => void pieces.push(data) },
    );
    expect(outcome).toMatchObject({ state: "ok", code: 0 });
    expect(Buffer.concat(pieces).toString()).toBe("0\n4711-is-the-pin|one\n.\n,two|g|1|7|w|");
  });

  it("counts all of 100 MB that a command writes and keeps nothing of it, and the next command runs", async () => {
    await save("talkative");
    const size = 100_000_000;
    const held = heldBytes();
    let [bytes, mostHeld] = [0, 0];
    const outcome = await test.hosts.dispatch(
      test.principal(),
      "talkative",
      { kind: "exec", line: `head -c ${size} /dev/zero` },
      {
        commandId: "talkative",
        timeoutMs: 60_000,
        onOutput: ({ data }) => {
          const look = Math.floor(bytes / LOOK_BYTES) < Math.floor((bytes + data.length) / LOOK_BYTES);
          bytes += data.length;
          if (look) mostHeld = Math.max(mostHeld, heldBytes() - held);
        },
      },
    );
    expect(outcome).toMatchObject({ state: "ok", code: 0 });
    expect(bytes).toBe(size);
    expect(mostHeld).toBeLessThan(size / 2);
    expect(await exec("talkative", "true")).toMatchObject({ state: "ok" });
  });

  it("trusts no first key when it is not to", async () => {
    const strict = await openTestHosts({ beside: test, sshTrustFirstKey: false });
    await save("strict");
    const run = () =>
      strict.hosts.dispatch(
        test.principal(),
        "strict",
        { kind: "exec", line: "true" },
        { commandId: `strict-${(next += 1)}`, timeoutMs: 20_000 },
      );
    expect(await run()).toMatchObject({
      state: "unreachable",
      message: expect.stringContaining("is not on its record"),
    });
    await save("strict", {}, server.fingerprint);
    expect(await run()).toMatchObject({ state: "ok" });
    await strict[Symbol.asyncDispose]();
  });

  it("says why a host is not reached, without its secrets", async () => {
    await save("nobody-there", { port: "1" });
    expect(await exec("nobody-there", "true")).toMatchObject({
      state: "unreachable",
      message: expect.stringContaining("ECONNREFUSED"),
    });
    await save("bad-key", { privatekey: "no key at all" });
    const outcome = await exec("bad-key", "true");
    expect(outcome.state).toBe("unreachable");
    await save("bad-password", { privatekey: null, password: "hunter2" });
    const refused = await exec("bad-password", "true");
    expect(refused).toMatchObject({ state: "unreachable", message: expect.stringContaining("authentication") });
    expect(JSON.stringify([outcome, refused])).not.toMatch(/hunter2|no key at all/);
  });
});
