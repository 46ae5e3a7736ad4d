import { rm } from "node:fs/promises";
import { expect, test } from "vitest";
import { BLOB_STREAM_APPENDS_AT_ONCE_MAX } from "../../../../common/limits.ts";
import { storeFolder } from "../../../../test/helpers/runs/folders.ts";
import { nodeFiles } from "../../../files.ts";
import { Streams, type StreamSizes } from "./streams.ts";

test("only so many appends are under way at once, as the steps of all that are may end in one turn", async () => {
  const folder = await storeFolder("odp-streams-");
  const inFlight = new Set<string>();
  let most = 0;
  const sizes: StreamSizes = {
    get: (digest) => {
      most = Math.max(most, inFlight.add(digest).size);
      return undefined;
    },
    set: async (digest) => void inFlight.delete(digest),
  };
  const streams = new Streams({ folder, files: nodeFiles, sizes });
  const names = Array.from({ length: 3 * BLOB_STREAM_APPENDS_AT_ONCE_MAX }, (_, at) => `stream ${at}`);
  const stored = await Promise.all(names.map((name) => streams.append(name, 0, Buffer.from(name))));
  expect(stored.map(({ size }) => size)).toEqual(names.map(({ length }) => length));
  expect(most).toBe(BLOB_STREAM_APPENDS_AT_ONCE_MAX);
  await rm(folder, { recursive: true });
});

test("an append that fails makes room for the next one", async () => {
  const folder = await storeFolder("odp-streams-");
  const sizes: StreamSizes = { get: () => undefined, set: () => Promise.resolve() };
  const streams = new Streams({ folder, files: nodeFiles, sizes });
  const faults = Array.from({ length: 2 * BLOB_STREAM_APPENDS_AT_ONCE_MAX }, (_, at) =>
    streams.append(`stream ${at}`, 1, Buffer.from("x")).catch((error: unknown) => error),
  );
  expect(await Promise.all(faults)).toEqual(faults.map(() => expect.objectContaining({ code: "conflict" }) as unknown));
  expect(await streams.append("stream", 0, Buffer.from("x"))).toEqual({ size: 1 });
  await rm(folder, { recursive: true });
});
