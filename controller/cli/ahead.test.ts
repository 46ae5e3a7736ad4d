import { expect, test } from "vitest";
import { aheadOf, aheadRows } from "./ahead.ts";

const object = (id: string, year: number) => ({ id, class: "/matrix/box", vtimeMs: Date.UTC(year, 0) });

function clientOf(pages: readonly { readonly objects: readonly object[]; readonly cursor?: string }[]) {
  const read: unknown[] = [];
  const client = {
    async *pages() {
      for (const message of pages) {
        read.push(message);
        yield await Promise.resolve({ message });
      }
    },
  };
  return { read, client: client as never };
}

test("objects ahead of the clock are read page by page, up to the limit, and shown with the furthest first", async () => {
  const pages = [
    { objects: [], cursor: "1" },
    { objects: [object("box:a", 2030), object("box:b", 2031)], cursor: "2" },
    { objects: [object("box:c", 2029)] },
  ];
  const { client } = clientOf(pages);
  const all = await aheadOf(client, 10);
  expect(all.more).toBe(false);
  expect(aheadRows(all)).toEqual([object("box:b", 2031), object("box:a", 2030), object("box:c", 2029)]);
  const few = clientOf(pages);
  expect(await aheadOf(few.client, 1)).toEqual({ objects: [object("box:a", 2030)], more: true });
  expect(few.read).toHaveLength(2);
});

test("where there is none it says so, and a limit that is no number is refused before anything is asked", async () => {
  expect(aheadRows({ objects: [], more: false })).toBe("No object is ahead of the controller's clock.");
  await expect(aheadOf(clientOf([]).client, Number("many"))).rejects.toMatchObject({ code: "invalid" });
});
