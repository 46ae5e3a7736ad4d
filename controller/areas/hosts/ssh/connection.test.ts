import { expect, test } from "vitest";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { quickSshServer } from "../../../../test/helpers/hosts/ssh-server.ts";
import { SshConnection } from "./connection.ts";

async function connectedTo(port: number): Promise<SshConnection> {
  const to = { address: "127.0.0.1", port, username: "web", password: "secret" };
  const { signal } = new AbortController();
  return SshConnection.connect(to, { clock: realClock, checkKey: () => Promise.resolve(true), signal });
}

test("the end of a command that is over at once is its end, not a lost connection", async () => {
  await using server = await quickSshServer(3);
  const { signal } = new AbortController();
  const connection = await connectedTo(server.port);
  const output: string[] = [];
  const end = await connection.run("true", {
    signal,
    onOutput: ({ data }) => output.push(Buffer.from(data).toString()),
  });
  connection.close();
  expect(end).toEqual({ code: 3, signal: undefined });
  expect(output.sort()).toEqual(["err\n", "out\n"]);
});

test("a script that has a bound and writes more fails, and one that keeps to it does not", async () => {
  await using server = await quickSshServer(0);
  const { signal } = new AbortController();
  const connection = await connectedTo(server.port);
  const run = (outputMaxBytes: number) => connection.run("true", { signal, outputMaxBytes });
  await expect(run(7)).rejects.toMatchObject({ code: "too_large", message: expect.stringContaining("7 bytes") });
  expect(await run(8)).toMatchObject({ code: 0 });
  connection.close();
});
