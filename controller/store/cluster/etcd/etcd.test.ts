import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { Etcd } from "./etcd.ts";

const NOBODY = ["http://127.0.0.1:1", "http://127.0.0.1:2"];

test("a stream whose member is given up while it is opened ends, as do those that were open", async () => {
  const etcd = new Etcd(NOBODY, testRuntime());
  const [open, opening] = [new SilentStream(), new SilentStream()];
  const { giveUp } = await etcd.open(async () => open);
  const opened = etcd.open(async () => {
    giveUp();
    return opening;
  });
  await expect(opened).rejects.toMatchObject({ code: "unavailable" });
  expect([open.destroyed, opening.destroyed]).toEqual([true, true]);
  etcd.close();
});

/** A stream like gRPC's, to a member that sends nothing. */
class SilentStream extends Duplex {
  cancel(): void {}
  override _read(): void {}
}
