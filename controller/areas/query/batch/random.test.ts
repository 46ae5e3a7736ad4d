import { expect, test } from "vitest";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { openTestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../../test/helpers/time/times.ts";
import { ObjectService } from "../../objects/index.ts";
import { QueryService } from "../service.ts";
import { visibleObjects } from "../index.ts";

const admin = testPrincipal();
const BATCHES = 30;

/** Statements over objects that are few, so that they meet; `@` stands for the classes. */
class Statements {
  readonly #random: ReturnType<typeof seededRandom>;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  batch(): readonly string[] {
    return Array.from({ length: 1 + this.#below(8) }, () => this.#statement());
  }

  #statement(): string {
    const path = this.#of(["@/cup", "@/cup/mug", "@/cup/"]);
    const kind = this.#below(5);
    if (kind <= 1 && !path.endsWith("/"))
      return `insert into ${path} (host, size) values ${Array.from({ length: 1 + this.#below(3) }, () => `('${this.#host()}', ${this.#below(6)})`).join(", ")}`;
    if (kind === 4) return `delete from ${path} where ${this.#condition()}`;
    return `update ${path} ${this.#of([`size = ${this.#below(6)}`, `size = size + 1`, `notes = case when size > 2 then null else split(host, '') end`, `notes = notes + ['${this.#host()}']`, `tags = tags + '${this.#host()}'`, `tags = tags - '${this.#host()}'`])} where ${this.#condition()}`;
  }

  #condition(): string {
    const ids = () => this.#of([`id = 'cup:${this.#host()}'`, `id in ('cup:${this.#host()}', 'mug:${this.#host()}')`]);
    const size = () => `size ${this.#of(["<", ">", "="])} ${this.#below(6)}`;
    return this.#of([ids, size, () => `${ids()} and ${size()}`, () => `host = '${this.#host()}'`])();
  }

  #host(): string {
    return `h${this.#below(5)}`;
  }

  #of<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.#below(choices.length)] ?? choices[0];
  }

  #below(limit: number): number {
    return Math.floor(this.#random.next() * limit);
  }
}

test.each(TIMES > 1 ? [1, 2, 3] : [1])(
  "random batches do what their statements do one by one, whatever is settled together (seed %i)",
  async (seed) => {
    await using engine = await openTestEngine();
    const runtime = testRuntime(realClock);
    const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
    const query = new QueryService({
      objects,
      runtime,
      batches: { stores: engine, controllers: { own: "one", has: () => true }, objects, runtime },
    });
    for (const root of ["/matrix/x", "/matrix/y"]) {
      await query.rows(
        admin,
        `create class ${root}/cup (host varchar, size int, notes list<varchar>, keys(host), index(size)); create class ${root}/cup/mug (handles int)`,
      );
    }
    const statements = new Statements(seed);
    for (let at = 0; at < BATCHES; at += 1) {
      const batch = statements.batch();
      await query.rows(admin, `begin ${batch.join("; ").replaceAll("@", "/matrix/x")} end`);
      for (const statement of batch) await query.rows(admin, statement.replaceAll("@", "/matrix/y"));
      const [made, expected] = await Promise.all(
        ["/matrix/x", "/matrix/y"].map((root) =>
          query.rows(admin, `select id, size, notes, tags from ${root}/cup/ order by id`),
        ),
      );
      expect(made, batch.join(";\n")).toEqual(expected);
    }
    await objects.close();
  },
);
