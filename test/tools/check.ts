import { spawn } from "node:child_process";

/**
 * `npm run check`: form, types, lint, import rules, checksums, ratchets, dead code and pages that name other files,
 * side by side. A tool's output is printed only when it complains.
 */
const STEPS: readonly (readonly [name: string, command: string])[] = [
  // `npm run format` fixes these complaints.
  ["form", "biome format"],
  // One native compiler reports type errors, and errors of promises and switches that only types show. It uses the
  // nearest tsconfig.json of each file, so it refuses Node in `common/`.
  ["types and lint", "oxlint --type-aware --type-check --deny-warnings"],
  [
    "import rules",
    "depcruise --config .dependency-cruiser.cjs --output-type err-long common controller agent deploy test",
  ],
  ["lock file", "tsx test/tools/lockfile.ts"],
  ["ratchets", "tsx test/tools/ratchets.ts --check"],
  ["dead code", "knip --no-progress"],
  // Pages that name tests, titles and words of other files: a change of those is told here, not after all tests.
  ["named files", "tsx test/tools/named-files.ts"],
  ["page of promises", "tsx test/tools/promises.ts --page"],
  ["page of ASVS", "vitest run --project whole --reporter dot test/security/asvs.test.ts"],
];

/**
 * The tools create many objects and end. Those in JavaScript have more room for short-lived ones; the compiler, which
 * keeps nearly all it allocates, collects only near a bound of memory.
 */
const ROOM = {
  NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ""} --max-semi-space-size=64`,
  GOGC: "off",
  GOMEMLIMIT: "6GiB",
};

const started = performance.now();
const results = await Promise.all(STEPS.map(([name, command]) => run(name, command)));
console.log(`check took ${seconds(started)}`);
process.exitCode = results.every(Boolean) ? 0 : 1;

function run(name: string, command: string): Promise<boolean> {
  const began = performance.now();
  return new Promise((resolve) => {
    const child = spawn(`node_modules/.bin/${command}`, {
      shell: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...ROOM },
    });
    const output: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => output.push(chunk));
    child.on("close", (code) => {
      if (code !== 0) console.log(Buffer.concat(output).toString());
      console.log(`${code === 0 ? "ok  " : "FAIL"} ${name} (${seconds(began)})`);
      resolve(code === 0);
    });
  });
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
