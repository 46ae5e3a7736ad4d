import { readFile, writeFile } from "node:fs/promises";
import { Command, InvalidArgumentError } from "commander";
import { makeKeys, makeLicence } from "./make.ts";

/** `npm run licence -- keys|sign`: key pairs of licences, and licences. */
const program = new Command("licence").description("makes key pairs of licences, and licences");

program
  .command("keys")
  .description("writes a new private key, readable by its owner alone, and prints the public one for license_keys")
  .argument("<file>", "of the private key; must not be there yet")
  .action(async (file: string) => {
    const { publicKey, privateKey } = makeKeys();
    await writeFile(file, privateKey, { mode: 0o600, flag: "wx" });
    console.log(publicKey);
  });

interface SignOptions {
  readonly key: string;
  readonly tenant: string;
  readonly serial: number;
  readonly until?: number;
  readonly servers: number;
  readonly agents: number;
}

program
  .command("sign")
  .description("prints a licence for POST /license/import")
  .requiredOption("--key <file>", "the private key")
  .requiredOption("--tenant <name>", "whom it is for")
  .requiredOption("--serial <number>", "greater than that of the licence before", whole)
  .option("--until <time>", "its end, such as 2031-01-01; without it there is none", moment)
  .option("--servers <number>", "hosts it allows; without it any number", whole, -1)
  .option("--agents <number>", "hosts with an agent it allows; without it any number", whole, -1)
  .action(async ({ key, tenant, serial, until, servers, agents }: SignOptions) => {
    const wish = { tenant, serial, expire: until ?? -1, server: servers, agent: agents };
    process.stdout.write(makeLicence(wish, await readFile(key, "utf8")));
  });

try {
  await program.parseAsync();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

function whole(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("It is a whole number.");
  return Number(text);
}

function moment(text: string): number {
  const time = Date.parse(text);
  if (!(time > 0)) throw new InvalidArgumentError("It is a day or a moment, such as 2031-01-01.");
  return time;
}
