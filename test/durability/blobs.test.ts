import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { isAppError } from "../../common/errors.ts";
import type { Random } from "../../common/time.ts";
import { Contents } from "../../controller/store/embedded/blobs/contents.ts";
import { Streams, type StreamSizes } from "../../controller/store/embedded/blobs/streams.ts";
import { makeFolder } from "../../controller/files.ts";
import { histories } from "./histories.ts";
import { liveThrough, type Life } from "./lives.ts";

/** Without threads, which the simulated disk does not wait for. */
const sha256 = (bytes: Uint8Array): Promise<Uint8Array> => Promise.resolve(createHash("sha256").update(bytes).digest());
const STREAMS = ["one", "two", "three"];
const APPENDS_MAX = 15;
const PUTS_MAX = 6;

histories({
  promise: "embedded-power-cut",
  part: "contents and streams of the embedded store",
  count: 75,
  found: [
    ["bytes behind the end that were never answered", 3],
    ["a content whose name was not durable, put again", 531],
    ["the size of a removed stream over a new one", 64],
  ],
  history: async (seed) => {
    const world = new World();
    await liveThrough({ seed, lives: 4, operationsMax: 120, live: (life) => world.live(life) });
  },
});

test("streams of a format that kept no sizes are taken over as they are", async () => {
  const world = new World();
  await liveThrough({
    seed: 1,
    lives: 0,
    operationsMax: 0,
    live: async ({ files }) => {
      await makeFolder(files, "/store/streams");
      const streams = new Streams({ folder: "/store/streams", files, sizes: world.sizes() });
      await streams.append("old", 0, bytesOf("old", 0, 300));
      world.sizesKept.clear();
      await streams.adopt();
      expect((await streams.read("old", 0, 1_000)).size).toBe(300);
    },
  });
});

/** Answers so far, and the rows in LMDB. */
class World {
  readonly sizesKept = new Map<string, number>();
  readonly #contents = new Map<string, number>();
  readonly #streams = new Map<string, number>();

  async live({ files, random, disk, last }: Life): Promise<void> {
    await makeFolder(files, "/store/streams");
    const contents = new Contents({ folder: "/store/contents", files, random, sha256 });
    await contents.open();
    const streams = new Streams({ folder: "/store/streams", files, sizes: this.sizes() });
    await this.#check(contents, streams);
    const fails = !last && random.next() < 0.2 ? 0.03 : 0;
    disk.faults.fails = () => fails > 0 && random.next() < fails;
    const writes = [
      ...STREAMS.map((name) => this.#append(streams, name, random)),
      this.#put(contents, random),
      this.#put(contents, random),
    ];
    for (const outcome of await Promise.allSettled(writes)) {
      if (outcome.status === "rejected" && !isOfTheDisk(outcome.reason)) throw outcome.reason;
    }
    disk.faults.fails = () => false;
    await this.#check(contents, streams);
  }

  /** Stores rows that are durable when they are answered, as in LMDB. */
  sizes(): StreamSizes {
    return {
      get: (digest) => this.sizesKept.get(digest),
      set: async (digest, size) => {
        await Promise.resolve();
        if (size === undefined) this.sizesKept.delete(digest);
        else this.sizesKept.set(digest, size);
      },
    };
  }

  async #append(streams: Streams, name: string, random: Random): Promise<void> {
    for (let count = 0; count < APPENDS_MAX; count++) {
      const known = this.#streams.get(name) ?? 0;
      // A caller that got no answer repeats the append from the last offset that it is sure of.
      const at = random.next() < 0.3 ? Math.max(0, known - 100) : known;
      const { size } = await streams.append(
        name,
        at,
        bytesOf(name, at, known - at + 1 + Math.floor(random.next() * 1_500)),
      );
      this.#streams.set(name, size);
      if (random.next() < 0.03) await this.#remove(streams, name);
    }
  }

  async #remove(streams: Streams, name: string): Promise<void> {
    this.#streams.delete(name);
    await streams.remove(name);
  }

  async #put(contents: Contents, random: Random): Promise<void> {
    for (let count = 0; count < PUTS_MAX; count++) {
      const bytes = bytesOf("content", Math.floor(random.next() * 8), 1 + Math.floor(random.next() * 3) * 700);
      const { digest, size } = await contents.put([bytes], (_, finish) => finish());
      this.#contents.set(digest, size);
    }
  }

  async #check(contents: Contents, streams: Streams): Promise<void> {
    for (const [digest, size] of this.#contents) {
      expect(await contents.stat(digest), "content").toEqual({ digest, size });
      const hash = createHash("sha256");
      for await (const part of contents.read(digest, {})) hash.update(part);
      expect(hash.digest("hex")).toBe(digest);
    }
    for (const name of STREAMS) {
      const { bytes, size } = await streams.read(name, 0, 1_000_000);
      expect(size, `stream ${name}`).toBeGreaterThanOrEqual(this.#streams.get(name) ?? 0);
      expect(Buffer.compare(bytes, bytesOf(name, 0, size)), `bytes of stream ${name}`).toBe(0);
    }
  }
}

function bytesOf(name: string, offset: number, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => 1 + ((offset + index + name.length * 31) % 251));
}

function isOfTheDisk(error: unknown): boolean {
  if (isAppError(error, "unknown_outcome")) return true;
  return error instanceof Error && "code" in error && error.code === "EIO";
}
