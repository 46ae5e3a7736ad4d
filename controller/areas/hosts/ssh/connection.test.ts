import { expect, test } from "vitest";
import { realClock } from "../../../../test/helpers/clock.ts";
import { quickSshServer } from "../../../../test/helpers/ssh-server.ts";
import { SshConnection } from "./connection.ts";

test("the end of a command that is over at once is its end, not a lost connection", async () => {
  await using server = await quickSshServer(3);
  const { signal } = new AbortController();
  const to = { address: "127.0.0.1", port: server.port, username: "web", password: "secret" };
  const connection = await SshConnection.connect(to, {
    clock: realClock,
    checkKey: () => Promise.resolve(true),
    signal,
  });
  const output: string[] = [];
  const end = await connection.run("true", {
    signal,
    onOutput: ({ data }) => output.push(Buffer.from(data).toString()),
  });
  connection.close();
  expect(end).toEqual({ code: 3, signal: undefined });
  expect(output.sort()).toEqual(["err\n", "out\n"]);
});
