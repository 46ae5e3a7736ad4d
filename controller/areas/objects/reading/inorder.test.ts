import { describe, expect, test } from "vitest";
import type { FindRequest } from "../../../store/objects.ts";
import { readInOrder } from "./inorder.ts";

/** The order that the store is asked for, in a class whose ids begin with `box:`. */
async function asked(order: object, ranges: FindRequest["ranges"] = []): Promise<FindRequest["order"]> {
  const requests: FindRequest[] = [];
  const store = {
    find: (request: FindRequest) => {
      requests.push(request);
      return Promise.resolve({ items: [] });
    },
  };
  const branch = { views: [{ cid: 7, label: "box" }], finds: [{ request: { terms: ["c7"], ranges } }] };
  const request = { order: { column: "vtime", ...order }, expected: 10 };
  const { pages } = readInOrder(
    { branch, slot: 0, classes: [] } as never,
    { request: request as never, most: 100 },
    { store, snapshot: {} as never },
  );
  for await (const page of pages) expect(page).toEqual([]);
  return requests[0]?.order;
}

describe("a read in order that begins behind an object", () => {
  const behind = { cid: 7, id: "k:1" };
  test.each([true, false])("leaves the objects before it to the store (descending: %s)", async (descending) => {
    const order = { descending, from: 5, behind: "box:k:1" };
    expect(await asked(order)).toEqual({ slot: 0, descending, behind });
    expect(await asked(order, [{ slot: 0, from: 1, to: 9 }])).toEqual({ slot: 0, descending, behind });
    expect(await asked(order, [{ slot: 1, from: 8, to: 2 }])).toEqual({ slot: 0, descending, behind });
  });

  test("begins with the first number of the read where its condition leaves that object out", async () => {
    const order = { from: 5, behind: "box:k:1" };
    expect(await asked({ ...order, descending: true }, [{ slot: 0, to: 4 }])).toEqual({ slot: 0, descending: true });
    expect(await asked({ ...order, descending: false }, [{ slot: 0, from: 6 }])).toEqual({
      slot: 0,
      descending: false,
    });
  });

  test("leaves nothing out where the id is one of another label, as the class had before it was renamed", async () => {
    expect(await asked({ descending: false, from: 5, behind: "boxes:k:1" })).toEqual({ slot: 0, descending: false });
  });
});
