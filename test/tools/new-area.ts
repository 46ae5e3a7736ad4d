import { layOut } from "./new-area/lay-out.ts";

/**
 * `npm run new-area -- <name>`: creates the files of an empty area and the lines that name it. The area passes
 * `npm run check` and its own tests.
 */
const [name = ""] = process.argv.slice(2);
try {
  for (const path of await layOut(process.cwd(), name)) console.log(path);
  console.log(`\nnpx vitest run --project unit controller/areas/${name}\nnpm run gen && npm run check`);
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 2;
}
