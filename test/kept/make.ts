/**
 * Makes a kept copy: `npx tsx test/kept/make.ts <name>`. Run it in a checkout of the version that the copy is for. See
 * README.md.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ObjectService } from "../../controller/areas/objects/index.ts";
import { openEmbeddedEngine } from "../../controller/store/embedded/index.ts";
import { seededRandom } from "../helpers/time/clock.ts";
import { TestClock, testPrincipal, testRuntime } from "../helpers/time/runtime.ts";
import { packFolder } from "./archive.ts";
import { visibleObjects } from "../../controller/areas/query/index.ts";

const [name = ""] = process.argv.slice(2);
const HALF_AN_HOUR_MS = 30 * 60_000;
const BOXES = 40;
const LINES = 60;
const admin = testPrincipal();
const text = (value: string): Uint8Array => new TextEncoder().encode(value);

const clock = new TestClock(Date.UTC(2026, 0, 1));
const madeMs = clock.nowMs();
const dir = await mkdtemp(join(tmpdir(), "odp-kept-"));
const engine = await openEmbeddedEngine({ dir, runtime: { clock, random: seededRandom(1) } });
await engine.createTenant("matrix");
const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(clock) });

const names = [{ name: "name", type: "varchar" as const }];
const columns = [...names, { name: "color", type: "varchar" as const }, { name: "size", type: "int" as const }];
await objects.createClass(admin, {
  path: "/matrix/box",
  columns,
  keys: ["name"],
  indexes: ["color", "size"],
  options: { version: true },
});
await objects.createClass(admin, {
  path: "/matrix/mortal",
  columns,
  keys: ["name"],
  options: { ttlSeconds: 3_600 },
});
await objects.createClass(admin, {
  path: "/matrix/line",
  kind: "record",
  columns: [
    { name: "text", type: "varchar" as const },
    { name: "level", type: "int" as const },
  ],
  indexes: ["level"],
});
await objects.createEdgeType(admin, { name: "contain", remedy: "contains" });

const box = (at: number): string => `b${String(at).padStart(2, "0")}`;
const rows = Array.from({ length: BOXES }, (_, at) => ({
  name: box(at),
  color: at % 2 === 0 ? "red" : "blue",
  size: at,
}));
await objects.unrestricted.insert(admin, "/matrix/box", rows);
await objects.unrestricted.insert(admin, "/matrix/mortal", [{ name: "1", color: "red", size: 1 }]);
await objects.unrestricted.insert(
  admin,
  "/matrix/line",
  Array.from({ length: LINES }, (_, at) => ({ text: `line ${at}`, level: at % 3 })),
);
const { kv, blobs } = await engine.tenant("matrix");
await kv.put("kept/plain", text("a value"));
await kv.put("kept/expiring", text("a value that ends"), { expiresAtMs: madeMs + 2 * HALF_AN_HOUR_MS });
await blobs.put([text("a content")], "kept");
await blobs.append("kept/stream", 0, text("a stream"));

clock.advance(HALF_AN_HOUR_MS);
await objects.unrestricted.update(admin, { id: "mortal:1" }, [{ column: "color", operation: "set", value: "blue" }]);
await objects.unrestricted.update(admin, { id: `box:${box(0)}` }, [
  { column: "color", operation: "set", value: "green" },
  { column: "contain", operation: "set", value: `box:${box(1)}` },
]);
await objects.unrestricted.remove(admin, [{ id: `box:${box(BOXES - 1)}` }]);

await objects.close();
await engine.close();
await writeFile(join(import.meta.dirname, `${name}.json.br`), await packFolder(dir));
await writeFile(join(import.meta.dirname, `${name}.json`), `${JSON.stringify({ madeMs, updatedMs: clock.nowMs() })}\n`);
await rm(dir, { recursive: true });
