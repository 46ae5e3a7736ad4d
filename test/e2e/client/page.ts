/** The examples of the page about the client as one program. Each is a block; the first makes the client. */
export function pageProgram(page: string): string {
  const examples = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = ""]) => code);
  const [first = "", ...others] = examples.map((code) =>
    code.replaceAll(/"https:\/\/odp\.example"|"http:\/\/127\.0\.0\.1:8080"/g, "options.url"),
  );
  const imported = first.match(/^import .*$/gm)?.join("\n") ?? "";
  const made = first.replaceAll(/^import .*\n/gm, "").replace(/\{ url: .*\}/, "options");
  return `${imported}
import type { ClientOptions } from "odp-client";

/** Returns what the examples print. */
export async function run(options: ClientOptions & { url: string }, _name: string): Promise<string[]> {
  const printed: string[] = [];
  const console = { log: (...values: unknown[]) => printed.push(values.join(" ")) };
${made}
${others.map((code) => `{\n${code}}`).join("\n")}
  return printed;
}
`;
}
