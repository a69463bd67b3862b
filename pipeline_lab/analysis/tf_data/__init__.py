"""What a trace says about the tf.data pipeline that ran: stages, who made which element, what each wait was spent on."""
