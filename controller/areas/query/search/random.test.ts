import { expect, test } from "vitest";
import type { Random } from "../../../../common/time.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../../test/helpers/time/times.ts";
import { ObjectService } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { type QueryResult, QueryService } from "../index.ts";
import { SearchService } from "./index.ts";
import { visibleObjects } from "../index.ts";

/** Random searches over random objects, answered by the area and by a few lines of plain evaluation. */
const SEARCHES = onCluster ? 12 : 120 * TIMES;
const OBJECTS = onCluster ? 20 : 80;
const admin = testPrincipal();
const runtime = testRuntime(realClock);
const DAY_MS = 86_400_000;
const FIRST_DAY_MS = Date.UTC(2024, 0, 1);
const WORDS = ["disk", "Disk", "error", "web-1", "oom_killer", "磁盘", "盘空", "磁", "x"];
const CLASSES = `create class /matrix/ent/box (note text, remark varchar, size int, seen timestamp, index(size, seen, tags)) with autosearch=true, key=manu;
  create class /matrix/ent/box/rack (slots int, index(slots)) with autosearch=true, key=manu;
  create class /matrix/ent/plain (note text, size int) with key=manu;
  create class /matrix/kept (note text, size int, index(size, tags)) with autosearch=true, key=manu, version=true`;
const KEPT = "/matrix/kept";
const PATHS = ["/matrix/ent/box", "/matrix/ent/box/rack", "/matrix/ent/plain", KEPT] as const;
/** Roots to search, and the classes below them. */
const ROOTS: readonly (readonly [string, readonly string[]])[] = [
  ["", [PATHS[0], PATHS[1], KEPT]],
  ["/matrix/ent/box: | ", [PATHS[0]]],
  ["/matrix/ent/box/: | ", [PATHS[0], PATHS[1]]],
  ["/matrix/ent/: | ", PATHS.slice(0, 3)],
  ["/matrix/kept: | ", [KEPT]],
];

/** An object as it is, or as one write left it. */
interface Plain {
  readonly id: string;
  readonly path: string;
  readonly values: Row;
  /** Time of a version, for classes that keep versions; other objects are written now. */
  readonly timeMs?: number;
  readonly isCurrent: boolean;
}

/** A piece of a search as text, and whether an object fulfils it. */
interface Piece {
  readonly text: string;
  readonly holds: (plain: Plain) => boolean;
}

class Generator {
  readonly #random: Random;
  #fields: readonly string[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  /** The states of one object, one after the other. */
  states(index: number): readonly Plain[] {
    const path = this.pick(PATHS);
    const id = `${path.slice(path.lastIndexOf("/") + 1)}:k${index}`;
    if (path !== KEPT) return [{ id, path, values: this.#values(path), isCurrent: true }];
    const isGone = this.#random.next() < 0.3;
    const states: Plain[] = [];
    for (let left = 1 + this.below(3); left > 0; left -= 1) {
      const values = { ...states.at(-1)?.values, ...this.#values(path) };
      states.push({
        id,
        path,
        values,
        timeMs: (states.at(-1)?.timeMs ?? FIRST_DAY_MS) + this.below(3) * DAY_MS + 1,
        isCurrent: left === 1 && !isGone,
      });
    }
    return states;
  }

  #values(path: string): Row {
    const values: Row = {};
    const set = (name: string, value: () => Value): void =>
      void (this.#random.next() < 0.75 && (values[name] = value()));
    set("note", () => this.#words(6).join(this.pick([" ", ", ", "/"])));
    set("size", () => this.below(6));
    if (path.startsWith(PATHS[0])) {
      set("remark", () => this.#words(2).join(" "));
      set("seen", () => FIRST_DAY_MS + this.below(6) * DAY_MS);
    }
    set("tags", () => ["red", "blue"].filter(() => this.#random.next() < 0.5));
    if (path === PATHS[1]) set("slots", () => this.below(4));
    return values;
  }

  segments(paths: readonly string[]): readonly Piece[] {
    this.#fields = paths.includes(PATHS[1]) ? ["size", "size", "tags", "slots"] : ["size", "size", "tags"];
    const pieces = Array.from({ length: 1 + this.below(3) }, () => this.#segment());
    if (this.#random.next() < 0.2) pieces.push(this.#window(paths.includes(PATHS[0]) && this.#random.next() < 0.5));
    return pieces;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }

  below(end: number): number {
    return Math.floor(this.#random.next() * end);
  }

  #segment(): Piece {
    const alternatives = Array.from({ length: this.#random.next() < 0.5 ? 1 : 1 + this.below(3) }, () =>
      this.#alternative(),
    );
    return {
      text: alternatives.map(({ text }) => text).join(this.pick([";", " ； "])),
      holds: (plain) => alternatives.some(({ holds }) => holds(plain)),
    };
  }

  #alternative(): Piece {
    const words = Array.from({ length: this.below(3) }, () => this.#word());
    const parts = words.length === 0 || this.#random.next() < 0.4 ? [...words, this.#test()] : words;
    return {
      text: parts.map(({ text }) => text).join(" "),
      holds: (plain) => parts.every(({ holds }) => holds(plain)),
    };
  }

  #word(): Piece {
    const word = this.pick([...WORDS, "full"]);
    const text = this.pick([word, word, `'${word}'`, `${word.slice(0, 2)}*`, `*${word.slice(1)}*`]);
    return {
      text,
      holds: ({ values }) =>
        [values.note, values.remark].some((value) => typeof value === "string" && hasWord(value, text)),
    };
  }

  #test(): Piece {
    const field = this.pick(this.#fields);
    if (field === "tags") {
      const tag = this.pick(["red", "blue", "green"]);
      return { text: `tags=${tag}`, holds: ({ values }) => Array.isArray(values.tags) && values.tags.includes(tag) };
    }
    const operator = this.pick(["=", "=", "!=", "<", ">", "<=", ">="] as const);
    const limit = this.below(6);
    return {
      text: `${field} ${operator} ${limit}`,
      holds: ({ values }) => typeof values[field] === "number" && ORDERED[operator](values[field] - limit),
    };
  }

  #window(isOfSeen: boolean): Piece {
    const [from, to] = [this.below(6), this.below(6)].map((day) => FIRST_DAY_MS + day * DAY_MS) as [number, number];
    const day = (timeMs: number) => new Date(timeMs).toISOString().slice(0, 10);
    const isIn = (timeMs: Value | undefined): boolean =>
      typeof timeMs === "number" && timeMs >= from && timeMs < to + DAY_MS;
    return {
      text: `window ${day(from)} to ${day(to)}${isOfSeen ? " for seen" : ""}`,
      holds: ({ values, timeMs }) => isIn(isOfSeen ? values.seen : timeMs),
    };
  }

  #words(most: number): string[] {
    return Array.from({ length: 1 + this.below(most) }, () => this.pick(WORDS));
  }
}

const ORDERED = {
  "=": (order: number) => order === 0,
  "!=": (order: number) => order !== 0,
  "<": (order: number) => order < 0,
  ">": (order: number) => order > 0,
  "<=": (order: number) => order <= 0,
  ">=": (order: number) => order >= 0,
} as const;

/** A text is a row of words and, of Han, of characters; a word is found where its own row is. */
function hasWord(value: string, text: string): boolean {
  const cut = (of: string, units: RegExp): string[] => of.toLowerCase().match(units) ?? [];
  if (!text.includes("*")) {
    const units = /[a-z0-9_]+|\p{Script=Han}| +|[,/-]+/gu;
    const wanted = `|${cut(text.replaceAll("'", ""), units)
      .join("|")
      .replace(/[ ,/-]+/g, "-")}|`;
    return `|${cut(value, units)
      .join("|")
      .replace(/[ ,/-]+/g, "-")}|`.includes(wanted);
  }
  return cut(text, /[a-z0-9_*]*[\p{Script=Han}]+[\p{Script=Han}*]*|[a-z0-9_*]+/gu).every((piece) => {
    const isHan = /\p{Script=Han}/u.test(piece);
    const pattern = new RegExp(`^${(isHan ? `*${piece}*` : piece).replaceAll("*", "[^]*")}$`, "u");
    return cut(value, /[a-z0-9_]+|\p{Script=Han}+/gu).some((unit) => pattern.test(unit));
  });
}

async function answer(result: Promise<QueryResult>, name: string): Promise<readonly Row[]> {
  try {
    const rows: Row[] = [];
    for await (const page of (await result).rows) rows.push(...page);
    return rows;
  } catch (error) {
    throw new Error(name, { cause: error });
  }
}

test.each([{ seed: 31 }, ...(onCluster ? [] : [{ seed: 32 }, { seed: 33, faultySeed: 33 }])])(
  "random searches are answered as plain evaluation does (%o)",
  async ({ seed, ...options }) => {
    await using engine = await openTestEngine(options);
    const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
    const random = seededRandom(seed);
    const generator = new Generator(random);
    await new QueryService({ objects, runtime }).rows(admin, CLASSES);
    const plain = Array.from({ length: OBJECTS }, (_, index) => generator.states(index)).flat();
    for (const { id, path, values, timeMs: atMs } of plain)
      await objects.unrestricted.insert(admin, path, [{ id, ...values }], atMs === undefined ? {} : { atMs });
    const present = new Set(plain.filter(({ isCurrent }) => isCurrent).map(({ id }) => id));
    await objects.unrestricted.remove(
      admin,
      plain.filter(({ id }) => !present.has(id)).map(({ id }) => ({ id })),
    );
    const search = new SearchService({ objects, runtime });
    let found = 0;
    for (let round = 0; round < SEARCHES; round += 1) {
      const limit = generator.pick([undefined, undefined, generator.below(5)]);
      const principal: Principal = {
        ...admin,
        data: [{ class: "/", access: "read", ...(limit === undefined ? {} : { where: `size > ${limit}` }) }],
      };
      const [root, paths] = generator.pick(ROOTS);
      const pieces = generator.segments(paths);
      const isNow = generator.pick([true, false]);
      const isSorted = isNow && generator.pick([true, false]);
      const text = `${isNow ? "#" : ""}${root}${pieces.map((piece) => piece.text).join(" | ")} ${isSorted ? "| sort size desc, id " : ""}| top -1 | print id, vtime`;
      const expected = plain
        .filter(({ path, isCurrent }) => paths.includes(path) && (isCurrent || !isNow))
        .filter(
          (one) =>
            pieces.every((piece) => piece.holds(one)) && (limit === undefined || Number(one.values.size ?? -1) > limit),
        )
        .sort(
          (left, right) =>
            Number(right.values.size ?? -1) - Number(left.values.size ?? -1) || (left.id < right.id ? -1 : 1),
        )
        .map(({ id, timeMs }) => (timeMs === undefined ? id : `${id} ${timeMs}`));
      const name = `seed ${seed} round ${round}: ${text} where ${limit ?? "all"}`;
      const rows = await answer(search.search(principal, text), name);
      const names = rows.map(({ id, vtime }) =>
        String(id).startsWith("kept") ? `${String(id)} ${String(vtime)}` : id,
      );
      const same = (ids: readonly unknown[]) => (isSorted ? ids : [...ids].sort());
      expect(same(names), name).toEqual(same(expected));
      found += expected.length;
    }
    // Searches that never find anything would prove nothing.
    expect(found).toBeGreaterThan(SEARCHES / 2);
    await objects.close();
  },
);
