import { pino } from "pino";
import { expect, test } from "vitest";
import { WEBSOCKET_QUEUE_MAX_BYTES, WEBSOCKET_QUEUE_MAX_FRAMES } from "../../../common/limits.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import type { Principal } from "../permissions/index.ts";
import { Delivery, type DeliveryDependencies } from "./delivery.ts";
import type { Notification, NotifiedObject } from "./types.ts";

/** Makes a frame, with or without an object. */
function frame(msg: string, isAbout = false): Notification {
  const told = { vtimeMs: 0, ctimeMs: 0, told: [] };
  const about: NotifiedObject = { permission: "objects:read", class: "/m", id: "1", values: {}, ...told };
  const members = { keyspace: "/matrix", source: "s", subject: "alerts", title: "t", reply: "" };
  return { ...members, msg, about: isAbout ? about : undefined };
}

function open(more: Partial<DeliveryDependencies> = {}) {
  const told: string[] = [];
  const closing = new AbortController();
  const delivery = new Delivery({
    log: pino({ level: "silent" }),
    line: {
      send: (text) => told.push(text),
      end: (reason) => {
        told.push(`end: ${reason}`);
        closing.abort();
      },
      closed: closing.signal,
    },
    present: () => Promise.resolve(testPrincipal()),
    visible: (_principal, notification) => Promise.resolve(notification),
    textOf: ({ msg }) => msg,
    ...more,
  });
  return { delivery, told, closing };
}

/** Waits until all work that can continue by itself is done. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Rights whose reads end when the test says so. */
function slowRights() {
  let asked = 0;
  let answer: (principal: Principal | undefined) => void = () => undefined;
  return {
    present: () => {
      asked++;
      return new Promise<Principal | undefined>((resolve) => (answer = resolve));
    },
    answer: (principal: Principal | undefined) => answer(principal),
    asked: () => asked,
  };
}

test("frames come in their order, with rights that are read after they were published", async () => {
  const rights = slowRights();
  const { delivery, told } = open({ present: rights.present });
  delivery.take(frame("1"));
  for (const msg of ["2", "3"]) delivery.take(frame(msg, true));
  expect(rights.asked()).toBe(1);
  rights.answer(testPrincipal());
  await settled();
  expect([told, rights.asked()]).toEqual([["1"], 2]);
  rights.answer(testPrincipal());
  await settled();
  expect(told).toEqual(["1", "2", "3"]);
  delivery.take(frame("4"));
  rights.answer(testPrincipal());
  await settled();
  expect([told.at(-1), rights.asked()]).toEqual(["4", 3]);
});

test("who may not listen any more is told nothing of what was published since, and the line ends", async () => {
  const { delivery, told } = open({ present: () => Promise.resolve(undefined) });
  delivery.take(frame("1"));
  await settled();
  delivery.take(frame("2"));
  await settled();
  expect(told).toEqual(["end: signed out"]);
});

test("while rights cannot be read, or seen by, objects are not told of; all else is", async () => {
  const away = () => Promise.reject(new Error("away"));
  for (const more of [{ present: away }, { visible: away }, { visible: () => Promise.resolve(undefined) }]) {
    const { delivery, told } = open(more);
    for (const [msg, isAbout] of [
      ["1", true],
      ["2", false],
      ["3", true],
    ] as const)
      delivery.take(frame(msg, isAbout));
    await settled();
    expect(told).toEqual(["2"]);
  }
});

test("a line that is closed takes nothing, and is sent nothing that waits", async () => {
  const rights = slowRights();
  const { delivery, told, closing } = open({ present: rights.present });
  for (const msg of ["1", "2"]) delivery.take(frame(msg));
  closing.abort();
  rights.answer(testPrincipal());
  await settled();
  delivery.take(frame("3"));
  await settled();
  expect([told, rights.asked()]).toEqual([["1"], 1]);
});

test.each([
  ["frames", Array.from({ length: WEBSOCKET_QUEUE_MAX_FRAMES }, () => "x")],
  ["text", ["x".repeat(WEBSOCKET_QUEUE_MAX_BYTES), "x"]],
])("a receiver for which too much waits, in %s, is too slow", async (_of, waiting) => {
  const rights = slowRights();
  const { delivery, told } = open({ present: rights.present });
  delivery.take(frame("first"));
  for (const msg of waiting) delivery.take(frame(msg));
  expect(told).toEqual([]);
  delivery.take(frame("last"));
  delivery.take(frame("later"));
  expect(told).toEqual(["end: too slow"]);
  rights.answer(testPrincipal());
  await settled();
});

test("what was sent waits no more", async () => {
  const { delivery, told } = open();
  for (const turn of [1, 2, 3]) {
    delivery.take(frame(String(turn)));
    delivery.take(frame("x".repeat(WEBSOCKET_QUEUE_MAX_BYTES)));
    await settled();
  }
  expect(told).toHaveLength(6);
});
