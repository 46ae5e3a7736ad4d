import { KEY_STATUS_DEADLINE_MS } from "../../../common/limits.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { exitCodeOfKeys, keyStatusOf, keyText, makeKeyFile, rotateKeyFile } from "../key.ts";

/** `odp key` */
export const KEY_COMMANDS: CommandDeclaration = {
  name: "key",
  summary: "make the key file that seals secrets, or put a new key into it",
  arguments: [
    { name: "file", summary: "the file to make: all controllers of a cluster need the same", completes: "files" },
  ],
  async run(call) {
    const file = call.text("file");
    await makeKeyFile(file);
    call.shell.note(
      `${file} is made. Every controller of a cluster needs a copy; without one, what is sealed is lost.`,
    );
  },
  commands: [
    {
      name: "rotate",
      summary: "put a new key above the others of a key file on this machine, and write its id",
      arguments: [{ name: "file", summary: "key file of this machine", completes: "files" }],
      run: rotate,
    },
    {
      name: "reload",
      summary: "have the controller read its keys again where they come from; only the one that is asked",
      async run({ shell }) {
        await (await shell.client()).call("postKeyReload");
      },
    },
    {
      name: "status",
      isReading: true,
      summary: "show which key seals, and what needs a former one",
      exitCodes: {
        0: "everything is sealed with the first key",
        1: "not asked",
        2: "something is in the way",
        3: "sealing anew is under way",
      },
      async run({ shell }) {
        const status = await keyStatusOf(await shell.client(KEY_STATUS_DEADLINE_MS));
        if (shell.format === "table") await shell.write(keyText(status));
        else await shell.show(status);
        return exitCodeOfKeys(status);
      },
    },
  ],
};

async function rotate(call: Call): Promise<void> {
  const { shell } = call;
  const file = call.text("file");
  const id = await rotateKeyFile(file);
  await shell.show(shell.format === "table" ? id : { file, id });
  shell.note(
    `${file} begins with a new key. Copy it to every other controller; each reads it within a minute, or at once by: odp key reload`,
  );
}
