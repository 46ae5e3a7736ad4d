import { randomBytes } from "node:crypto";
import { open } from "node:fs/promises";
import { AppError } from "../../common/errors.ts";
import { SECRET_KEY_BYTES, secretKeyLine } from "../../common/secret-key.ts";

/** Makes a key file that only its owner reads. One that is there is never replaced: what it sealed would be lost. */
export async function makeKeyFile(file: string): Promise<void> {
  const handle = await open(file, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
    throw new AppError("conflict", `${file} is there already, and what was sealed with it opens with no other key.`);
  });
  try {
    await handle.writeFile(secretKeyLine(randomBytes(SECRET_KEY_BYTES)));
    await handle.sync();
  } finally {
    await handle.close();
  }
}
