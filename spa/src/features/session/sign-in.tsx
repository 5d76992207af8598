import { Button, PasswordInput } from "@mantine/core";
import { useState } from "react";
import { ApiError, wordsOf } from "@/client/problem";
import { Notice } from "@/ui/notice";
import { useSignIn } from "./queries";
import classes from "./sign-in.module.css";

/** Asks for the admin key. */
export function SignIn() {
  const [key, setKey] = useState("");
  const signIn = useSignIn();
  return (
    <main className={classes.page}>
      <form
        className={classes.form}
        onSubmit={(e) => {
          e.preventDefault();
          if (key !== "") {
            signIn.mutate(key);
          }
        }}
      >
        <h1 className={classes.title}>Training</h1>
        {/* For password managers, which file a password under a name. */}
        <input type="text" name="username" value="admin" autoComplete="username" readOnly hidden />
        <PasswordInput
          label="Admin key"
          description="admin_api_key in the study's config.yaml"
          inputWrapperOrder={["label", "input", "description", "error"]}
          autoComplete="current-password"
          autoFocus
          required
          withAsterisk={false}
          value={key}
          onChange={(e) => setKey(e.currentTarget.value)}
          visibilityToggleButtonProps={{ "aria-label": "Show the key" }}
        />
        {signIn.error && (
          <Notice tone="danger" alert title={reason(signIn.error)}>
            {wordsOf(signIn.error).hint}
          </Notice>
        )}
        <Button type="submit" loading={signIn.isPending} fullWidth>
          Sign in
        </Button>
      </form>
    </main>
  );
}

function reason(error: unknown): string {
  return error instanceof ApiError && error.status === 401 ? "This is not the admin key." : wordsOf(error).message;
}
