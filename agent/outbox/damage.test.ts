import { appendFile, readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { encodeHeader } from "./segment.ts";
import { folder, useOutboxes, openOutbox, text, texts, segments } from "../../test/helpers/hosts/outbox-world.ts";

useOutboxes();

describe("an outbox", () => {
  it("writes entries and marks in one piece: wherever the file is torn, both are there or neither", async () => {
    const outbox = await openOutbox();
    for (let index = 1; index <= 5; index++)
      await outbox.append([text(`a${index}`), text(`b${index}`)], { marks: [{ key: "at", value: String(index) }] });
    await outbox.close();
    const path = await onlySegment();
    const whole = await readFile(path);
    for (let size = whole.length; size > whole.length - 200; size -= 7) {
      await truncate(path, size);
      const torn = await openOutbox();
      const held = await texts(torn, 1);
      expect(held.length).toBe(2 * Number(torn.mark("at") ?? 0));
      expect(await torn.append([text("next")])).toBe(held.length + 1);
      expect(await texts(torn, 1)).toEqual([...held, "next"]);
      await torn.close();
      await writeFile(path, whole);
    }
  });

  it("leaves out a damaged frame in the middle and keeps what is behind it", async () => {
    const outbox = await openOutbox();
    for (const name of ["aaaa", "bbbb", "cccc"]) await outbox.append([text(name)]);
    await outbox.close();
    const path = await onlySegment();
    const bytes = await readFile(path);
    bytes.write("X", bytes.indexOf("bbbb"));
    await writeFile(path, bytes);
    const damaged = await openOutbox();
    expect(damaged.damagedFrames).toBe(1);
    expect(await texts(damaged, 1)).toEqual(["aaaa", "cccc"]);
    expect(await damaged.append([text("dddd")])).toBe(4);
  });

  it("keeps what is behind several damaged frames in a row, and goes on behind it", async () => {
    const outbox = await openOutbox();
    for (const name of ["aaaa", "bbbb", "cccc", "dddd", "eeee"]) await outbox.append([text(name)]);
    await outbox.close();
    const path = await onlySegment();
    const bytes = await readFile(path);
    for (const name of ["bbbb", "cccc", "dddd"]) bytes.write("X", bytes.indexOf(name));
    await writeFile(path, bytes);
    const damaged = await openOutbox();
    expect([damaged.damagedFrames, damaged.tornBytes]).toEqual([3, 0]);
    expect(await texts(damaged, 1)).toEqual(["aaaa", "eeee"]);
    expect(await damaged.append([text("ffff")])).toBe(6);
  });

  it("cuts garbage off its end", async () => {
    const outbox = await openOutbox();
    await outbox.append([text("a")]);
    await outbox.close();
    await appendFile(await onlySegment(), Buffer.alloc(5_000, 7));
    const again = await openOutbox();
    expect(again.tornBytes).toBe(5_000);
    expect(await texts(again, 1)).toEqual(["a"]);
    await again.close();
    expect((await openOutbox()).tornBytes).toBe(0);
  });

  it("knows a file that could not be finished, should its deletion have been lost", async () => {
    const outbox = await openOutbox();
    for (const name of ["a", "b"]) await outbox.append([text(name)], { marks: [{ key: "at", value: name }] });
    await outbox.close();
    const header = encodeHeader({ format: 1, stream: outbox.streamId, base: 2, marks: [["at", "a"]] });
    await writeFile(join(folder, "0000000002.seg"), header);
    const again = await openOutbox();
    expect([again.mark("at"), again.nextSequence, await texts(again, 1)]).toEqual(["b", 3, ["a", "b"]]);
  });
});

async function onlySegment(): Promise<string> {
  const names = await segments();
  expect(names).toHaveLength(1);
  return join(folder, names[0] ?? "");
}
