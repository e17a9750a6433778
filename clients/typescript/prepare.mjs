// Builds the package when npm installs this folder or packs it: makes the types from ../openapi.json, then compiles.
// npm does not install the tools of a folder that it links, so this does. It prints nothing unless it fails.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
// Its own tools: those that somebody has elsewhere are of another version, or lack the types of Node.
const hasTool = ([name, version]) => {
  const path = `node_modules/${name}/package.json`;
  return existsSync(new URL(path, import.meta.url)) && read(path).version === version;
};

function npm(...words) {
  // npm names the program that runs it, so that no other version is found.
  const [program, before] = process.env.npm_execpath ? [process.execPath, [process.env.npm_execpath]] : ["npm", []];
  // The flags of the installation that runs this are not those of this folder.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_config_(local_prefix|global|prefix|save|omit|include|production|dry_run|install_links)$/.test(name)));
  const ran = spawnSync(program, [...before, ...words], { cwd: here, encoding: "utf8", env });
  if (ran.status !== 0) {
    console.error(ran.stdout ?? "", ran.stderr ?? "", ran.error ?? "");
    process.exit(1);
  }
}

if (!existsSync(new URL("../openapi.json", import.meta.url))) {
  // A package that was built has everything.
  if (existsSync(new URL("dist/index.js", import.meta.url))) process.exit(0);
  console.error("The package cannot be built: ../openapi.json is missing. Copy the whole folder `clients` of the repository, not only `clients/typescript`.");
  process.exit(1);
}
if (!Object.entries(read("package.json").devDependencies).every(hasTool)) {
  npm("install", "--ignore-scripts", "--no-save", "--no-package-lock", "--include=dev", "--no-audit", "--no-fund");
}
npm("run", "build");
