import { Readable } from "node:stream";
import { Type } from "typebox";
import { FilePath, FileRead, FileWrite } from "../../../common/api/files.ts";
import { AppError } from "../../../common/errors.ts";
import { endpoint, type Answer, type Endpoint } from "../../http/endpoint.ts";
import type { Principal } from "../permissions/index.ts";
import type { FileName, FileService } from "./service.ts";

export function fileRoutes({ files }: { readonly files: FileService }): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/fs/*",
      permission: "files:read",
      summary: "Read a file, or ask whether it is there",
      input: FileRead,
      output: Type.Union([Type.String(), Type.Boolean()]),
      handler: ({ principal, input }) => read(files, { principal, name: nameOf(input), type: input.type ?? "open" }),
    }),
    endpoint({
      method: "PUT",
      path: "/fs/*",
      permission: "files:write",
      summary: "Write a text file",
      input: FileWrite,
      output: Type.String(),
      body: "multipart",
      handler: async ({ principal, input }) => {
        await files.write(principal, nameOf(input), { text: input.data });
        return { message: "" };
      },
    }),
    endpoint({
      method: "POST",
      path: "/fs/*",
      permission: "files:write",
      summary: "Upload files into a folder",
      input: FilePath,
      output: Type.String(),
      body: "multipart",
      handler: async ({ principal, input, files: uploads }) => {
        if (uploads.length === 0) throw new AppError("invalid", "There is no part uploadfile in the form.");
        const folder = nameOf(input);
        for (const upload of uploads) {
          await files.write(principal, { ...folder, path: `${folder.path}/${upload.filename}` }, { file: upload.path });
        }
        return { message: "" };
      },
    }),
  ];
}

function nameOf(input: { readonly "*": string; readonly issys?: boolean | undefined }): FileName {
  return { path: input["*"], space: input.issys ? "system" : "user" };
}

interface Reading {
  readonly principal: Principal;
  readonly name: FileName;
  readonly type: string;
}

async function read(files: FileService, { principal, name, type }: Reading): Promise<Answer<string | boolean>> {
  switch (type) {
    case "check":
      return { message: await files.exists(principal, name) };
    case "file":
      return { message: await files.text(principal, name) };
    case "open":
    case "download": {
      const file = await files.open(principal, name.path, name.space);
      const content = Readable.from(file.bytes);
      const attachment = type === "download" ? { filename: file.name } : {};
      return { content, contentType: "application/octet-stream", ...attachment };
    }
    default:
      throw new AppError("unsupported", `Reading a file with type=${type} is not offered yet.`);
  }
}
