import { useQuery } from "@tanstack/react-query";
import { Shell } from "@/app/shell";
import { ApiError } from "@/client/problem";
import { statusQuery } from "@/features/runs/queries";
import { SignIn } from "@/features/session/sign-in";
import { Loaded } from "@/ui/loaded";
import classes from "./shell.module.css";

/** Lets in whoever is signed in and asks the others for the key. */
export function Gate() {
  const status = useQuery(statusQuery);
  if (status.error instanceof ApiError && status.error.status === 401) {
    return <SignIn />;
  }
  if (status.data) {
    return <Shell status={status.data} />;
  }
  return (
    <>
      <div className={classes.header}>
        <div className={classes.bar} />
      </div>
      <main className={classes.main}>
        <Loaded query={status} what="the server's state" height={244}>
          {() => null}
        </Loaded>
      </main>
    </>
  );
}
