/**
 * A server for the tests of one worker: a real process with free ports, in memory or over PostgreSQL.
 *
 * `LARIMAR_TEST_BINARY` is the server (default: the debug build), `LARIMAR_TEST_ENGINE_URL` a PostgreSQL to run it on.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

export const DEVELOPMENT_ACCOUNT = 'devstoreaccount1';
export const DEVELOPMENT_KEY =
  'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

/** How long a server may take until it has printed its addresses. */
const START_MILLISECONDS_MAX = 30_000;

export class Server {
  private constructor(
    private readonly process: ChildProcess,
    private readonly directory: string,
    /** The admin endpoint, where the console is: `http://127.0.0.1:10003`. */
    readonly admin: string,
    /** As the banner prints it. */
    readonly connectionString: string,
    readonly endpoints: { blob: string; queue: string; table: string },
  ) {}

  /** Starts a server with these further arguments and waits for its addresses. */
  static async start(extra: string[] = [], environment: NodeJS.ProcessEnv = {}): Promise<Server> {
    const binary = resolve(process.env['LARIMAR_TEST_BINARY'] ?? '../target/debug/larimar');
    const directory = mkdtempSync(join(tmpdir(), 'larimar-console-'));
    const engine = process.env['LARIMAR_TEST_ENGINE_URL'];
    const storage = engine ? [`--engine=${engine}`, `--blob-store=file://${directory}/blobs`] : ['--durability=memory'];
    const ports = ['--table-port=0', '--queue-port=0', '--blob-port=0', '--admin-port=0'];
    const child = spawn(binary, ['serve', ...storage, ...ports, ...extra], {
      cwd: directory,
      env: { ...process.env, XDG_RUNTIME_DIR: directory, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const found = new Map<string, string>();
    const printed: string[] = [];
    await new Promise<void>((done, fail) => {
      const timer = setTimeout(
        () => fail(new Error(`no addresses from ${binary}:\n${printed.join('\n')}`)),
        START_MILLISECONDS_MAX,
      );
      const read = (line: string) => {
        printed.push(line);
        const field = /^ {2}(\S+ \S+) {2,}(\S+)/.exec(line);
        if (field?.[1] && field[2]) found.set(field[1], field[2]);
        if (field?.[1] === 'admin endpoint') {
          clearTimeout(timer);
          done();
        }
      };
      createInterface({ input: child.stdout }).on('line', read);
      createInterface({ input: child.stderr }).on('line', read);
      child.on('exit', (code) => fail(new Error(`${binary} ended with ${code}:\n${printed.join('\n')}`)));
    });
    const at = (name: string) => found.get(name) ?? '';
    return new Server(child, directory, at('admin endpoint'), at('connection string'), {
      blob: at('blob endpoint'),
      queue: at('queue endpoint'),
      table: at('table endpoint'),
    });
  }

  async stop(): Promise<void> {
    const ended = new Promise((done) => this.process.once('exit', done));
    if (this.process.exitCode === null) {
      this.process.kill('SIGKILL');
      await ended;
    }
    rmSync(this.directory, { recursive: true, force: true });
  }
}
