import { expect, test } from "vitest";
import { SCRIPT_MEMORY_READY_BYTES } from "../../../common/limits.ts";
import { Machine, prepareMachine } from "./machine.ts";

const HOST = { call: () => "", stopped: false };
const ROW = JSON.stringify({ n: 1, text: "a row of some columns", at: 1_763_880_000_000, host: "web-1" });
/** Number of rows whose text and twice that size when parsed fit into the ready memory. */
const ROWS = Math.floor(SCRIPT_MEMORY_READY_BYTES / 8 / ROW.length);

async function machineAfter(source: string): Promise<Machine> {
  const machine = await Machine.open(await prepareMachine([]));
  machine.begin({ globals: "{}", seed: 1, name: "/a.js" }, HOST);
  machine.evaluate(source, "/a.js");
  return machine;
}

test("a machine goes back after a run that read many rows, and is given up after one that took much more", async () => {
  const read = (times: number): string =>
    `var text = "[" + Array(${ROWS}).fill(${JSON.stringify(ROW)}).join() + "]", kept = [];
     for (var i = 0; i < ${times}; i++) kept.push(JSON.parse(text));`;
  expect((await machineAfter(read(1))).rewind()).toBe(true);
  expect((await machineAfter(read(64))).rewind()).toBe(false);
});
